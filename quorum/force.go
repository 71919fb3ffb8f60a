package quorum

import (
	"context"
	"slices"
	"time"

	"github.com/redquorum/redquorum/script"
)

// ForceRelease frees a lock whoever holds it, and keeps its holder from restoring it. It is for operators: the holder
// learns of it at its next renewal, and until then believes in its lease, so only fencing tokens protect what it is
// working on; another process than this one may even hand it on to the next of its goroutines ([Lease.Release]). It reports whether anybody held the lock.
//
// It returns a *QuorumError if no quorum confirmed (ErrNoQuorum) or ctx ended; the lock may then be back after the
// holder's next renewal.
func (c *Coordinator) ForceRelease(ctx context.Context, name string) (bool, error) {
	const op = "force-release"
	if err := c.validateName(name); err != nil {
		return false, err
	}
	if err := c.enter(); err != nil {
		return false, err
	}
	defer c.leave()
	if ctx.Err() != nil {
		return false, c.noAnswer(op, name, contextErrors(ctx)...)
	}

	defer c.keep(name) // what this process holds under that name is not to become anybody else's

	// First who it is. A node that missed the holder would let it restore the lock, unless it knows whom to refuse.
	b := c.survey(script.Inspect{Name: c.key(name)})
	if c.all(ctx, b) != nil {
		return false, c.failure(op, name, b, contextErrors(ctx)...)
	}
	if t := b.count(); t.blind(len(c.nodes), c.need) {
		return false, c.failure(op, name, b, ErrNoQuorum)
	}
	var holders []string
	lives := time.Duration(0)
	answers, _ := b.snapshot()
	for _, a := range answers {
		if h := a.reply.Holder; h != "" && !slices.Contains(holders, h) {
			holders = append(holders, h)
		}
		lives = max(lives, a.reply.TTL)
	}
	// As long as the lease could: it has at most what its longest key has, unless a quorum renews it, and a quorum
	// will not. A margin for what the clocks differ, and for a renewal that was under way.
	if sum := lives + c.drift(c.cfg.TTL) + c.cfg.TTL; sum > lives { // a foreign key may have centuries left
		lives = sum
	}

	b = c.survey(script.ForceRelease{Name: c.key(name), Holders: holders, Lives: lives})
	if c.all(ctx, b) != nil {
		return false, c.failure(op, name, b, contextErrors(ctx)...)
	}
	if b.count().granted < c.need {
		return false, c.failure(op, name, b, ErrNoQuorum)
	}
	held := len(holders) > 0
	answers, _ = b.snapshot()
	for _, a := range answers {
		held = held || a.reply.Status == script.Released
	}
	return held, nil
}
