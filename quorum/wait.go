package quorum

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// wait stands in the line of a name until the lock is had, or the waiting is over.
func (ls *lines) wait(ctx context.Context, c *Coordinator, name string, t terms) (*Lease, error) {
	w := &waiter{c: c, ctx: ctx, terms: t, line: ls.join(c, name), looked: -1}
	if deadline, ok := ctx.Deadline(); ok {
		w.ends = deadline
	}
	if t.limited {
		if ends := time.Now().Add(t.wait); w.ends.IsZero() || ends.Before(w.ends) {
			w.ends = ends
		}
		expired := make(chan struct{})
		defer time.AfterFunc(t.wait, func() { close(expired) }).Stop()
		w.expired = expired
	}
	defer w.decline() // when it has left
	defer w.line.leave(w)
	if place := w.line.queue(w); place > 0 {
		w.waits(place)
	}
	l, err := w.serve()
	w.waited(l, err)
	return l, err
}

// serve is what a waiter does in its line.
func (w *waiter) serve() (*Lease, error) {
	c, name, t := w.c, w.line.name, w.terms
	if w.turn != nil {
		if _, over := w.sleep(w.turn, 0); over != nil {
			return nil, over
		}
	}
	if over := w.untilGiven(); over != nil {
		return nil, over
	}
	if l := w.step(); l != nil {
		return l, nil
	}
	w.since = c.clock.Now()
	if over := w.letOthers(); over != nil {
		return nil, over
	}
	var last *verdict
	var vote stalemate
	for round := 0; ; round++ {
		if over := w.over(); over != nil {
			return nil, over
		}
		if votes := w.line.hopeless(w); votes != nil {
			return nil, c.quorumError("acquire", name, votes, c.classify(votes))
		}
		attempt := w.line.attempting(w)
		lease, v := c.tracedAttempt(w.ctx, "acquire", name, t, w.line.behind(t))
		if v == nil {
			w.line.won(lease.hold, last != nil)
			return lease, nil
		}
		w.line.attempted(attempt, slices.Clone(v.votes)) // those of the verdict may become an error's
		// A node that answers after the decision may have been free, too, or be one more that waiting cannot cure.
		v.ballot.whenComplete(func() { w.line.attempted(attempt, v.ballot.votes()) })
		switch {
		case w.ctx.Err() != nil:
			// Whatever the verdict was: that others have the lock is no reason not to wait for it, the context is.
			return nil, c.quorumError("acquire", name, v.votes, contextErrors(w.ctx)...)
		case slices.Contains(v.classes, ErrClosed), slices.Contains(v.classes, ErrSameServer):
			return nil, c.quorumError("acquire", name, v.votes, v.classes...)
		case w.line.hopeless(w) != nil:
			continue
		case v.split && !vote.settled(c, v):
			w.waits(0)
			// A wake does not shorten this: it would bring the contenders back together.
			if _, over := w.sleep(nil, comeBack(v.roundTrip, c.cfg.NodeTimeout, round+rivals(v.votes), c.random)); over != nil {
				return nil, over
			}
			continue
		}
		round = 0
		if over := w.stand(v, last); over != nil {
			return nil, over
		}
		last = v
	}
}

// untilGiven waits while this process has the lock itself: then there is nobody to ask. But the process may be the last to
// know that it has lost it, by a force-release for one, so it takes a look now and then.
func (w *waiter) untilGiven() error {
	h := w.line.last()
	if h == nil || h.isGone() || w.lease != nil {
		return nil
	}
	w.waits(0)
	for {
		given, over := w.sleep(h.leaves(), pollHeld/2+w.c.upTo(pollHeld))
		if over != nil || given || w.lease != nil {
			return over
		}
		if s := w.look(w.lookNext(), w.c.cfg.NodeTimeout); s.err == nil && s.holder != h.holder {
			return nil
		}
	}
}

// letOthers stays away for a while if others waited when this process gave the lock back, and if one of them has it then,
// until that one is done.
func (w *waiter) letOthers() error {
	d := w.line.courtesy()
	if d == 0 {
		return nil
	}
	w.waits(0)
	if over := w.pauses(w.line.hurry(d)); over != nil || w.free(lookout{hurried: true}) {
		return over
	}
	return w.stand(&verdict{}, nil)
}

// stand waits until it is worth trying again: others have the lock, or too few nodes answer.
func (w *waiter) stand(v, last *verdict) error {
	ln := w.line
	w.waits(0)
	ln.found(v.votes)
	due := w.due(v)
	for ln.hopeless(w) == nil {
		woken, crowded := false, ln.crowded(w.c.clock.Now().Sub(w.since))
		switch {
		case crowded:
			ln.hush()
			if over := w.stayAway(due); over != nil || !w.c.clock.Now().Before(due) {
				return over
			}
		case ln.listen():
			// Subscribe, then look once more: what was announced before nobody heard.
			w.confirmed()
			ln.awake()
			if w.free(lookout{count: true}) {
				return nil
			}
			continue
		default:
			var over error
			if woken, over = w.sleep(ln.wake, max(1, min(due.Sub(w.c.clock.Now()), w.poll(v, last)))); over != nil {
				return over
			}
			if woken && ln.alone() || slices.Contains(v.classes, ErrNoQuorum) || !w.c.clock.Now().Before(due) {
				return nil
			}
			if woken {
				ln.woke()
				if _, over := w.sleep(nil, w.delay()); over != nil {
					return over
				}
			}
		}
		if w.free(lookout{woken: woken, count: woken, hurried: woken || crowded}) {
			return nil
		}
	}
	return nil
}

// waiter is one call of Acquire that waits.
type waiter struct {
	c       *Coordinator
	ctx     context.Context
	terms   terms
	line    *line
	turn    chan struct{}   // closed when the waiter is at the head of its line; nil if it was at once
	ends    time.Time       // of the wait time or the context, whichever is first; zero if neither ends
	expired <-chan struct{} // closed when the wait time is over; nil if it is unlimited
	attempt int             // its last; 0 if it has made none
	late    int             // how often somebody else came first
	looked  int             // whose turn to be looked at it was last; -1 if nobody's yet
	since   clock.Instant   // at the head of its line, or back after the others' turns
	waiting atomic.Bool     // it could not have the lock at once
	begun   clock.Instant   // of the wait, if a tracer was told of it

	// See handoff.go.
	handed   chan *Lease // receives the hold that is handed on to this waiter; it has room for one. nil if none can be
	lease    *Lease      // that it received
	stepped  bool        // guarded by line.mu: it asks the nodes itself, or is about to get a lease
	promised bool        // guarded by line.mu: handed receives, or has received
}

// sleep waits for the signal, for d (0 means for ever), or for the end of the waiting, whose error it returns. It tells
// whether it was the signal.
func (w *waiter) sleep(signal <-chan struct{}, d time.Duration) (signalled bool, over error) {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-signal:
		signalled = true
	case w.lease = <-w.handed:
	case <-timer:
	case <-w.ctx.Done():
	case <-w.c.closing:
	case <-w.expired:
		return false, w.failure(w.c.classify(w.line.lastWord()))
	}
	// A wait that is over is over, even if a wake came meanwhile.
	if over := w.over(); over != nil {
		return false, over
	}
	return signalled, nil
}

// over returns the error of a wait that is over; nil while it is not.
func (w *waiter) over() error {
	if w.ctx.Err() != nil {
		return w.failure(contextErrors(w.ctx)...)
	}
	select {
	case <-w.c.closing:
		return w.failure(ErrClosed)
	case <-w.expired:
		return w.failure(w.c.classify(w.line.lastWord()))
	default:
		return nil
	}
}

// failure is the error that ends the wait. Whatever ends it, it carries every node's last word.
func (w *waiter) failure(classes ...error) error {
	return w.c.quorumError("acquire", w.line.name, w.line.lastWord(), classes...)
}

// part is d, but no more than a quarter of the time that is left to the waiter: whoever has but a moment shall have tried.
func (w *waiter) part(d time.Duration) time.Duration {
	if !w.ends.IsZero() {
		d = min(d, time.Until(w.ends)/4)
	}
	return max(d, 1)
}

// confirmed waits until a quorum of nodes has confirmed the subscription, but not long: a node that hangs or does not
// allow it must not keep us from trying.
func (w *waiter) confirmed() {
	deadline := time.NewTimer(w.c.cfg.NodeTimeout)
	defer deadline.Stop()
	for !w.line.heard() && w.line.hopeless(w) == nil {
		select {
		case <-w.line.wake:
		case <-deadline.C:
			return
		case <-w.ctx.Done():
			return
		case <-w.c.closing:
			return
		case <-w.expired:
			return
		}
	}
}

// Bounds of the poll. A wake is a hint that may be lost, and a name may become free without one (its TTL ran out, a
// client that may not publish released it), so nobody sleeps longer than this. Each poll looks at another node.
const (
	pollHeld   = time.Second            // while others hold it
	pollOutage = 250 * time.Millisecond // while too few nodes answer: at first, then twice as long
	untried    = 10 * time.Second       // while others hold it, until somebody tries who has only looked since it left it to them

	// Who waits for very many names looks a thousand times a second, and at each of them once a minute, give or take half.
	pollEach = time.Millisecond
	pollMost = time.Minute
)

// poll is how long to sleep at most before the next look. Jitter keeps the waiters of different processes apart.
func (w *waiter) poll(v, last *verdict) time.Duration {
	poll := min(max(pollHeld, time.Duration(w.line.all.count())*pollEach), pollMost)
	if slices.Contains(v.classes, ErrNoQuorum) {
		poll = pollOutage
		if last != nil && slices.Contains(last.classes, ErrNoQuorum) {
			poll = 2 * pollOutage
		}
	}
	return poll/2 + w.c.upTo(poll)
}

// due is when the TTLs that were seen allow a quorum. Whoever has left the lock to others has seen none, and tries in time.
func (w *waiter) due(v *verdict) clock.Instant {
	free := retryAfter(v.votes, w.c.need)
	switch {
	case v.votes == nil:
		free = w.line.hurry(untried)
	case free <= 0:
		free = time.Hour // nobody can tell
	}
	return w.c.clock.Now().Add(free).Add(w.c.upTo(5 * time.Millisecond)) // a foreign key may have centuries left
}
