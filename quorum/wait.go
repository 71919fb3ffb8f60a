package quorum

import (
	"context"
	"slices"
	"time"
)

// wait stands in the line of a name until the lock is had, or the waiting is over.
func (ls *lines) wait(ctx context.Context, c *Coordinator, name string, t terms) (*Lease, error) {
	w := &waiter{c: c, ctx: ctx, terms: t, line: ls.join(c, name), turn: make(chan struct{})}
	defer w.line.leave(w)
	w.line.queue(w)
	if t.limited {
		timer := time.NewTimer(t.wait)
		defer timer.Stop()
		w.expired = timer.C
	}

	if over := w.sleep(w.turn, 0); over != nil {
		return nil, over
	}
	var last *verdict
	var vote stalemate
	for round := 0; ; round++ {
		attempt := w.line.attempting()
		lease, v := c.attempt(ctx, name, t)
		if v == nil {
			return lease, nil
		}
		w.line.attempted(attempt, v.votes)
		// A node that answers after the decision may have been free, too.
		v.ballot.whenComplete(func() { w.line.attempted(attempt, v.ballot.votes()) })
		switch {
		case ctx.Err() != nil:
			// Whatever the verdict was: that others have the lock is no reason not to wait for it, the context is.
			return nil, c.quorumError("acquire", name, v.votes, contextErrors(ctx)...)
		case v.hopeless, slices.Contains(v.classes, ErrClosed):
			return nil, c.quorumError("acquire", name, v.votes, v.classes...)
		case v.split && !vote.settled(c, v):
			// A wake does not shorten this: it would bring the contenders back together.
			if over := w.sleep(nil, comeBack(v.roundTrip, c.cfg.NodeTimeout, round, c.random)); over != nil {
				return nil, over
			}
			continue
		}
		round = 0
		if w.line.listen() {
			// Subscribe, then try once more: what was announced before nobody heard.
			w.confirmed()
			continue
		}
		if over := w.sleep(w.line.wake, w.pause(v, last)); over != nil {
			return nil, over
		}
		last = v
	}
}

// waiter is one call of Acquire that waits.
type waiter struct {
	c       *Coordinator
	ctx     context.Context
	terms   terms
	line    *line
	turn    chan struct{}    // closed when the waiter is at the head of its line
	expired <-chan time.Time // the wait time is over; nil if it is unlimited
}

// sleep waits for the signal, for d (0 means for ever), or for the end of the waiting, whose error it returns.
func (w *waiter) sleep(signal <-chan struct{}, d time.Duration) error {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	var classes []error
	select {
	case <-signal:
	case <-timer:
	case <-w.ctx.Done():
	case <-w.c.closing:
		classes = []error{ErrClosed}
	case <-w.expired:
		classes = []error{w.c.classify(w.line.lastWord())}
	}
	switch {
	case w.ctx.Err() != nil:
		classes = contextErrors(w.ctx)
	case classes == nil:
		// A wait time that is over is over, even if a wake came meanwhile.
		select {
		case <-w.expired:
			classes = []error{w.c.classify(w.line.lastWord())}
		default:
			return nil
		}
	}
	// Whatever ends a wait carries every node's last word.
	return w.c.quorumError("acquire", w.line.name, w.line.lastWord(), classes...)
}

// confirmed waits until a quorum of nodes has confirmed the subscription, but not long: a node that hangs or does not
// allow it must not keep us from trying.
func (w *waiter) confirmed() {
	deadline := time.NewTimer(w.c.cfg.NodeTimeout)
	defer deadline.Stop()
	for !w.line.heard() {
		select {
		case <-w.line.wake:
		case <-deadline.C:
			return
		case <-w.ctx.Done():
			return
		case <-w.c.closing:
			return
		}
	}
}

// Bounds of the poll. A wake is a hint that may be lost, and a name may become free without one (its TTL ran out, a
// client that may not publish released it), so nobody sleeps longer than this.
const (
	pollHeld   = time.Second            // while others hold it
	pollOutage = 250 * time.Millisecond // while too few nodes answer: at first, then twice as long
)

// pause is how long to sleep at most before the next attempt: until the TTLs that were seen allow a quorum, or the
// poll is due. Jitter keeps the waiters of different processes apart.
func (w *waiter) pause(v, last *verdict) time.Duration {
	poll := pollHeld
	if slices.Contains(v.classes, ErrNoQuorum) {
		poll = pollOutage
		if last != nil && slices.Contains(last.classes, ErrNoQuorum) {
			poll = 2 * pollOutage
		}
	}
	poll = poll/2 + w.c.upTo(poll)
	if free := retryAfter(v.votes, w.c.need); free > 0 {
		return min(poll, free+w.c.upTo(5*time.Millisecond))
	}
	return poll
}
