package quorum

import (
	"sync"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/renew"
	"github.com/redquorum/redquorum/script"
)

// A hold is a lock that is held: what all the handles (leases) of one holder share.
type hold struct {
	*claim
	terms
	fence   int64 // what the nodes are told: the highest token that is the holder's
	cadence renew.Cadence

	// turn is taken by whoever changes the state on the nodes, one at a time: a renewal and a nested hold that
	// overlapped would each tell the nodes a count that the other does not know.
	turn chan struct{}
	// The farewell is said once, by whoever ends the lease or by Close.
	departure sync.Once
	departed  *ballot // made when the lease ends

	mu      sync.Mutex
	handles []*Lease
	token   int64         // of all handles that there are
	passed  event         // the hold is handed on from them, see handoff.go
	over    event         // the lease has ended
	gone    event         // a quorum of nodes has confirmed that, or all have answered
	kept    bool          // it is not handed on any more
	began   clock.Instant // of the attempt that won it
	start   clock.Instant // of the last successful request
	end     clock.Instant // of the lease: what may be believed
	limit   clock.Instant // MaxHold; zero if there is none
	err     error         // why the lease has ended; nil while it lives
	loss    Loss          // why it was lost
	watch   *renew.Watch
	leaving bool // the last handle is being given back
	misses  int  // rounds in a row that did not reach every node

	// Of the watchdog's renewals, guarded by turn: when the last one began, and how many failed in a row.
	renewing clock.Instant
	failing  int
}

// newHold makes a won attempt a hold under watch, and returns its first handle. It fails once the coordinator is
// closed.
func (c *Coordinator) newHold(a *attempt) (*Lease, bool) {
	h := &hold{
		claim:   a.claim,
		terms:   a.terms,
		fence:   a.highest,
		cadence: renew.Cadence{TTL: a.terms.ttl, NodeTimeout: c.cfg.NodeTimeout},
		turn:    make(chan struct{}, 1),
		token:   a.highest - a.more,
		began:   a.start,
		start:   a.start,
		end:     a.end(),
	}
	if h.watched && c.cfg.MaxHold > 0 {
		h.limit = a.start.Add(c.cfg.MaxHold)
		h.end = clock.Earlier(h.end, h.limit)
	}
	l := h.newHandle()
	if !c.live(h) {
		return nil, false
	}
	h.mu.Lock()
	if h.err == nil { // Close may have come first
		h.watch = c.watchdog.Watch(h, h.renewal(), h.end)
	}
	h.mu.Unlock()
	a.ballot.whenComplete(h.heal)
	return l, true
}

// renewal is when the watchdog renews the lease, if all is well; zero if never: it has a lease time, or it has been
// renewed up to its limit, which the keys outlive.
func (h *hold) renewal() clock.Instant {
	if !h.watched || (!h.limit.IsZero() && !h.end.Before(h.limit)) {
		return clock.Instant{}
	}
	return h.cadence.Next(h.start)
}

// newHandle adds a handle. It is called with h.mu held, or when nobody else knows of the hold.
func (h *hold) newHandle() *Lease {
	l := &Lease{hold: h, token: h.token}
	h.handles = append(h.handles, l)
	return l
}

// handle adds a handle beside those with the same token. The caller has told the nodes the new count.
func (h *hold) handle(token int64) (*Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return nil, h.err
	case h.leaving, h.token != token:
		return nil, ErrReleased
	}
	l := h.newHandle()
	l.nested = true
	return l, nil
}

// holds returns why the hold is no longer that of a handle and those beside it; nil while it is.
func (l *Lease) holds() error {
	if err := l.hold.check(); err != nil {
		return err
	}
	if l.wasHandedOn() {
		return ErrReleased
	}
	return nil
}

// wasHandedOn tells whether the hold is somebody else's by now.
func (l *Lease) wasHandedOn() bool {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token != l.token
}

// handedOn is closed when the hold is somebody else's.
func (l *Lease) handedOn() <-chan struct{} {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.token != l.token {
		return past
	}
	return h.passed.wait()
}

// count is the hold count.
func (h *hold) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.handles)
}

// check returns why the lease has ended; nil while it lives. It reads the clock: a process that was suspended learns
// the truth here, before the watchdog has had a chance to run.
func (h *hold) check() error {
	h.mu.Lock()
	err, end := h.err, h.end
	h.mu.Unlock()
	if err == nil && !h.c.clock.Now().Before(end) {
		h.Expire()
		h.mu.Lock()
		err = h.err
		h.mu.Unlock()
	}
	return err
}

// Expire ends the lease because its end has come, unless it has been moved meanwhile. The watchdog calls it.
func (h *hold) Expire() {
	h.mu.Lock()
	over := h.err == nil && !h.c.clock.Now().Before(h.end)
	limited := !h.limit.IsZero() && h.end == h.limit
	h.mu.Unlock()
	if over {
		why := LossNotRenewed
		switch {
		case limited:
			why = LossMaxHold
		case !h.watched:
			why = LossLeaseTime
		}
		h.lose(why)
	}
}

// finish ends the lease and tells every node that it is over. It returns the nodes' answers as they come in; nil if
// the lease had ended before.
func (h *hold) finish(cause error, why Loss) *ballot {
	if !h.conclude(cause, why, h.freed) {
		return nil
	}
	return h.departed
}

// freed frees the lock on the nodes when the lease has ended.
func (h *hold) freed(cause error) {
	// A coordinator that is being closed frees it itself.
	if h.c.enter() != nil {
		return
	}
	h.c.forget(h)
	if cause == ErrLost { //nolint:errorlint // one of two
		h.departLater() // who finds that out has other leases to watch, or other answers to read
	} else {
		h.depart()
		h.c.leave()
	}
}

// conclude ends the lease, once, and tells those who wait for it. Then it calls after, even if a tracer panics: the lock must
// not stay on the nodes until its TTL ends.
func (h *hold) conclude(cause error, why Loss, after func(cause error)) bool {
	h.mu.Lock()
	if h.err != nil {
		h.mu.Unlock()
		return false
	}
	h.err, h.loss = cause, why
	h.departed = h.c.newBallot()
	h.over.happen()
	if h.watch != nil {
		h.watch.Stop()
	}
	var cancels []func(error)
	handles := h.handles
	h.handles = nil
	for _, l := range handles {
		cancels = append(cancels, l.close(cause)...)
	}
	h.mu.Unlock()
	defer after(cause)
	for _, cancel := range cancels {
		cancel(cause)
	}
	return true
}

// departLater says farewell without keeping its caller. It ends what enter began.
func (h *hold) departLater() {
	h.c.background.do(func() {
		defer h.c.leave()
		h.depart()
	})
}

// depart says farewell on every node, once.
func (h *hold) depart() {
	h.departure.Do(func() { h.leave(h.terms, script.Free, h.fence, (*departing)(h)) })
}

// departing is a hold that takes the answers to its farewell.
type departing hold

func (d *departing) put(i int, a answer) {
	h := (*hold)(d)
	if a.reply.Status == script.Released {
		h.c.lines.released(h.c, h.name, i, a.reply.Count)
	}
	h.departed.put(i, a)
	if t := h.departed.count(); t.granted+t.held >= h.c.need || t.waiting == 0 {
		h.mu.Lock()
		first := !h.gone.happened
		h.gone.happen()
		h.mu.Unlock()
		if first {
			h.c.lines.given(h.name)
		}
	}
}

// remaining is what may still be believed.
func (h *hold) remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return 0
	}
	return max(0, h.end.Sub(h.c.clock.Now()))
}

// isGone tells whether the nodes have confirmed that the hold is over.
func (h *hold) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone.happened
}

// ends is closed when the lease ends.
func (h *hold) ends() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over.wait()
}

// leaves is closed when the nodes have confirmed that it did.
func (h *hold) leaves() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone.wait()
}

// votes are what the nodes would tell somebody else who asks for the lock.
func (h *hold) votes() []Vote {
	now := h.c.clock.Now()
	votes := make([]Vote, len(h.lanes))
	for i := range h.lanes {
		votes[i] = h.lanes[i].heldBy(h.holder, now)
	}
	return votes
}
