package quorum

import (
	"context"
	"maps"
	"slices"
)

// Hand-off within the process.
//
// A lock that many goroutines of one process want costs each of them two round trips to every node, though between them
// the nodes have nothing to decide: the process has the lock. So whoever gives it back hands the hold on to the next in the
// line, with a token of its own, and tells no node. This is lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting", PPoPP
// 2012), with the process as the cohort. What keeps it as safe as a hold of its own for each:
//
//   - The hold stays what it is, with its holder, its watchdog and its end: what is believed of it is believed of the same
//     requests. It is handed on only while half of its TTL is left, or whoever gets it would have little of it.
//   - The tokens were all granted at once, by the nodes that granted the lock, for those who stood in the line then
//     (token.go). With the last of them the hold goes back to the nodes.
//   - A handle that was given back is over, and so is what hangs on it: its contexts, and the right to nest under them.
//   - Others, who may wait elsewhere, get their chance when a turn is over, or when the tokens are: then this process does
//     not take the lock again before they did (crowd.go).
//
// A hold with a lease time, or under MaxHold, ends at a moment of its own and is not handed on; nor is one to somebody who
// asked for another TTL, nor one that somebody of this process has force-released. Where a round trip takes longer than a
// turn none is.

// mostHandedOn bounds the tokens that are asked for at once. A fence must not run ahead of the clocks, which bridge a counter
// that was lost: so it is fewer than the microseconds that an acquire and a release take.
const mostHandedOn = 100

// behind is how many of those who stand in the line behind its head may have a hold of these terms without asking the nodes.
func (ln *line) behind(t terms) (n int) {
	if ln.c.cfg.MaxHold > 0 {
		return 0
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for _, w := range ln.waiters[min(1, len(ln.waiters)):] {
		if n == mostHandedOn || !w.terms.alike(t) {
			break
		}
		n++
	}
	return n
}

// alike tells whether a hold of these terms is one of those, for the watchdog to renew.
func (t terms) alike(other terms) bool { return t.watched && other.watched && t.ttl == other.ttl }

// keep keeps the holds of a name from being handed on.
func (c *Coordinator) keep(name string) {
	c.mu.Lock()
	holds := slices.Collect(maps.Keys(c.holds))
	c.mu.Unlock()
	for _, h := range holds {
		if h.name == name {
			h.mu.Lock()
			h.kept = true
			h.mu.Unlock()
		}
	}
}

// handOff hands the hold of a lease on to the next in the line, and tells whether it did. The lease is over then.
func (ls *lines) handOff(l *Lease) bool {
	ls.mu.Lock()
	ln := ls.byName[l.hold.name]
	ls.mu.Unlock()
	if ln == nil {
		return false
	}
	ln.mu.Lock()
	w := ln.next(l.hold)
	if w == nil {
		ln.mu.Unlock()
		return false
	}
	lease, cancels := l.pass()
	if lease != nil {
		w.stepped, w.promised = true, true
		ln.crowd.handed = true
	}
	ln.mu.Unlock()
	if lease == nil {
		return false
	}
	// The waiter was promised the lock, so it gets it even if a tracer panics; but not before the old handle's contexts have ended.
	defer func() { w.handed <- lease }()
	for _, cancel := range cancels {
		cancel(ErrReleased)
	}
	return true
}

// next is the waiter to whom a hold can be handed on; nil if there is none. It is called with ln.mu held.
func (ln *line) next(h *hold) *waiter {
	if ln.ours != h || len(ln.waiters) == 0 {
		return nil
	}
	w := ln.waiters[0]
	if w.stepped || w.handed == nil || !w.terms.alike(h.terms) {
		return nil
	}
	return w
}

// pass ends a handle and makes the next one, with the next token. It returns nil if the hold is not to be handed on.
func (l *Lease) pass() (next *Lease, cancels []func(error)) {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.c.clock.Now()
	switch {
	case h.err != nil, l.err != nil, h.leaving, len(h.handles) > 1:
		return nil, nil
	case h.token == h.fence, h.kept:
		return nil, nil
	case now.Sub(h.began) >= turn, h.end.Sub(now) < h.ttl/2:
		return nil, nil
	}
	cancels = l.close(ErrReleased)
	h.passed.happen()
	h.token, h.passed = h.token+1, event{}
	next = h.newHandle()
	next.handed = true
	return next, cancels
}

// step makes the waiter one that asks the nodes itself, unless it was handed the lock: then it returns the lease.
func (w *waiter) step() *Lease {
	lease := w.receive()
	if lease != nil && lease.Err() != nil {
		return nil // it was lost on the way
	}
	return lease
}

// receive returns what is handed to the waiter; nil if nothing is, and nothing will be.
func (w *waiter) receive() *Lease {
	w.line.mu.Lock()
	w.stepped = true
	promised := w.promised
	w.promised = false
	w.line.mu.Unlock()
	lease := w.lease
	if promised && lease == nil {
		lease = <-w.handed
	}
	w.lease = nil
	return lease
}

// decline gives back what was handed to a waiter whose wait was over, to the next in the line if there is one.
func (w *waiter) decline() {
	if lease := w.receive(); lease != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()                  // the release is sent all the same, and nobody waits for it
		_, _ = lease.release(ctx) // of which nobody was told that it had begun
	}
}
