package quorum

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redquorum/redquorum/script"
)

// A force-release makes nodes let go of a lock before its TTL is over. After that, a node that loses its data may help the
// old holder: the rule that lets a lease survive a restart (see lane.weigh) trusts the node's last counted vote, which the
// force-release has taken back. So it takes two steps. First every node stores the revocation of every holder, and nothing
// is deleted. Keys are deleted once so many nodes have the revocation that, after the loss of one of them, the old holder
// cannot collect a quorum of votes from nodes that do not know of it.

// revocationsNeeded is how many of n nodes have to store a revocation before any key is deleted. Those that did not store
// it and one that lost it are together n - (n - need + 2) + 1 = need - 1: no quorum.
func revocationsNeeded(n, need int) int { return min(n, n-need+2) }

// ForceRelease frees a lock, whoever holds it, and keeps the holder from restoring it. It is for operators. The holder
// learns of it at its next renewal and relies on its lease until then; so does any goroutine of its process to which the
// hold is handed over meanwhile ([Lease.Release]). Only fencing tokens protect what they are working on.
//
// It reports whether anybody held the lock. A nil error means that the lock is free now, or was taken by somebody else
// since. Otherwise the error is a *QuorumError:
//
//   - ErrNotFreed: the holder's lease cannot be renewed any more, but too few nodes know of that to delete the keys (it
//     takes N - quorum + 2: 3 of 3, 4 of 5). The lock is free after RetryAfter, when the keys have expired. QuorumError.Got
//     counts the nodes that know, and Need says how many it takes. Calling again when more nodes are up frees it sooner.
//   - ErrNoQuorum: fewer nodes than a quorum know, and the holder may go on; or they know, and fewer than a quorum confirmed
//     that the keys are gone. RetryAfter is set in the second case only.
//   - ctx's error, if it ended. Any of the above may be true.
func (c *Coordinator) ForceRelease(ctx context.Context, name string) (bool, error) {
	if err := c.validateName(name); err != nil {
		return false, err
	}
	if err := c.enter(); err != nil {
		return false, err
	}
	defer c.leave()
	if ctx.Err() != nil {
		return false, c.noAnswer("force-release", name, contextErrors(ctx)...)
	}
	// What this process holds under that name is not handed over to anybody else.
	c.keep(name)
	defer c.keep(name)

	f := &forceRelease{c: c, ctx: ctx, name: name}
	if err := f.find(); err != nil {
		return false, err
	}
	if len(f.holders) == 0 {
		return false, nil
	}
	if err := f.revoke(); err != nil {
		return true, err
	}
	return true, f.delete()
}

// forceRelease is one that is under way.
type forceRelease struct {
	c    *Coordinator
	ctx  context.Context
	name string

	holders []string      // that were found on any node; "" is a key of another type
	looked  []bool        // nodes that have told who has the lock there
	lives   time.Duration // how long the revocation has to live
	free    time.Duration // when the keys have expired on a quorum of nodes that stored it; 0 if nobody can tell
}

// ask asks all nodes and waits for them.
func (f *forceRelease) ask(req script.Request) (*ballot, error) {
	b := f.c.survey(req)
	if f.c.all(f.ctx, b) != nil {
		return b, f.c.failure("force-release", f.name, b, contextErrors(f.ctx)...)
	}
	return b, nil
}

// find finds the holders on all nodes.
func (f *forceRelease) find() error {
	b, err := f.ask(script.Inspect{Name: f.c.key(f.name)})
	if err != nil {
		return err
	}
	if t := b.count(); t.blind(len(f.c.nodes), f.c.need) {
		return f.c.failure("force-release", f.name, b, ErrNoQuorum)
	}
	f.c.guard.look() // for the longest TTL in use: the holder's may be longer than ours
	var longest time.Duration
	answers, _ := b.snapshot()
	f.looked = make([]bool, len(answers))
	for i, a := range answers {
		f.looked[i] = a.vote.Outcome == Granted || a.vote.Outcome == Held
		if a.reply.Status == script.Held && !slices.Contains(f.holders, a.reply.Holder) {
			f.holders = append(f.holders, a.reply.Holder)
		}
		longest = max(longest, a.reply.TTL)
	}
	// As long as the leases could live: at most as long as the longest key, unless a quorum renews it. The margin is for
	// the difference of the clocks, and for a renewal that is under way, with whatever TTL.
	f.lives = longest
	margin := f.c.guard.longestTTL()
	if sum := longest + f.c.drift(margin) + margin; sum > longest { // a foreign key may have centuries left
		f.lives = sum
	}
	return nil
}

// revoke stores the revocation of the holders on all nodes.
func (f *forceRelease) revoke() error {
	c := f.c
	b, err := f.store()
	if err == nil && f.overlooked(b) {
		b, err = f.store()
	}
	if err != nil {
		return err
	}
	stored := b.count().granted
	if stored < c.need {
		return c.failure("force-release", f.name, b, ErrNoQuorum)
	}
	f.free = c.expired(b)
	if need := revocationsNeeded(len(c.nodes), c.need); stored < need {
		e := c.failure("force-release", f.name, b, ErrNotFreed)
		e.Need, e.RetryAfter = need, f.free
		return e
	}
	return nil
}

func (f *forceRelease) store() (*ballot, error) {
	return f.ask(script.Revoke{Name: f.c.key(f.name), Holders: f.holders, Lives: f.lives})
}

// overlooked adds holders of nodes that had not told who has the lock when they were asked first, and reports whether there
// are any. A holder whom one of the others has by now came later, and is spared.
func (f *forceRelease) overlooked(b *ballot) bool {
	answers, _ := b.snapshot()
	var later []string
	for i, a := range answers {
		if f.looked[i] {
			later = append(later, a.reply.Holder)
		}
	}
	before := len(f.holders)
	for i, a := range answers {
		if h := a.reply.Holder; !f.looked[i] && a.reply.TTL != 0 && !slices.Contains(f.holders, h) && !slices.Contains(later, h) {
			f.holders = append(f.holders, h)
		}
	}
	return len(f.holders) > before
}

// expired is when the keys have expired on a quorum of the nodes that stored a revocation; nobody renews them there.
func (c *Coordinator) expired(stored *ballot) time.Duration {
	answers, _ := stored.snapshot()
	var ends []time.Duration
	for _, a := range answers {
		switch {
		case a.vote.Outcome != Granted || a.reply.TTL == script.NoExpiry:
		case a.reply.TTL == 0:
			ends = append(ends, 0)
		default:
			ends = append(ends, max(a.reply.TTL, a.reply.TTL+time.Millisecond)) // Redis cuts a TTL off to whole milliseconds
		}
	}
	if len(ends) < c.need {
		return 0
	}
	slices.SortFunc(ends, cmp.Compare)
	return ends[c.need-1]
}

// delete deletes the holders' keys on all nodes.
func (f *forceRelease) delete() error {
	c := f.c
	b, err := f.ask(script.ForceRelease{Name: c.key(f.name), Holders: f.holders})
	if err != nil {
		return err
	}
	// Held by another: somebody took the lock after the old holder's key was gone.
	if t := b.count(); t.granted+t.held < c.need {
		e := c.failure("force-release", f.name, b, ErrNoQuorum)
		e.RetryAfter = f.free
		return e
	}
	return nil
}
