package quorum

import (
	"context"
	"slices"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// A Lease is one hold of a lock, with its end. It is a handle: nested holds of one lock have one each, and each is to
// be released. It is safe for concurrent use.
//
// A lease is believed until start + TTL - drift of its last successful request, on a clock that goes on during a
// suspend. Until then no other client of the same nodes gets the lock (see the package's documentation for what that
// assumes). But a process can be paused between looking and acting; what must never be done twice belongs behind a
// resource that compares fencing tokens (see [Lease.Token]).
type Lease struct {
	hold  *hold
	token int64

	// How it was had, besides by the nodes' votes.
	nested, handed bool

	// Guarded by hold.mu.
	err      error
	done     event       // the lease has ended
	traced   *tracedHold // nil if no tracer was told that it began
	contexts map[*leaseContext]func(error)
}

// Name is the lock's name.
func (l *Lease) Name() string { return l.hold.name }

// Holder is what the nodes know the holder by: the client's UUID and a number. Nested holds share it, and so do those that
// were handed on within the process (see [Lease.Release]).
func (l *Lease) Holder() string { return l.hold.holder }

// Token is the fencing token: positive, and greater than that of every earlier lease of the name, in the order of the
// grants at the nodes, and within the process in that in which a hold is handed on. A resource that remembers the highest
// token it has seen, and refuses lower ones, accepts nothing from an older holder from then on, whatever pauses and clocks
// do. It compares token >= last, since a holder writes more than once. Nested holds share it.
func (l *Lease) Token() int64 { return l.token }

// HoldCount is how many holds the lock has at present, this one included; 0 after its end.
func (l *Lease) HoldCount() int {
	if l.holds() != nil {
		return 0
	}
	return l.hold.count()
}

// Remaining is how long the lease may still be believed, if it is not renewed; 0 after its end. It reads the clock.
func (l *Lease) Remaining() time.Duration {
	if l.Err() != nil {
		return 0
	}
	return l.hold.remaining()
}

// Done is closed when the lease has ended: promptly when its end has come, before any node can have expired the key,
// and at once when it turns out to be lost or is released. To look rather than to wait, use Err, which reads the clock
// itself.
func (l *Lease) Done() <-chan struct{} {
	_ = l.hold.check() // after a suspend the first look must find it closed
	return l.ends()
}

// ends is closed when the lease has ended.
func (l *Lease) ends() <-chan struct{} {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.done.wait()
}

// Err is nil while the lease lives, then ErrReleased or ErrLost. It reads the clock, so it never says nil after the
// end.
func (l *Lease) Err() error {
	_ = l.hold.check()
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.err
}

// Renew extends the lease now: a watched one as the watchdog would, one with a lease time by its lease time from now.
// It returns nil if a quorum agreed before the lease's end, ErrLost or ErrReleased if the lease has ended, and a
// *QuorumError if no quorum answered or ctx ended; the lease then lives on until its old end.
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	h := l.hold
	if err := h.c.enter(); err != nil {
		return ErrReleased
	}
	defer h.c.leave()
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return h.c.noAnswer("renew", h.name, contextErrors(ctx)...)
	case <-l.ends():
		return l.Err()
	}
	defer func() { <-h.turn }()
	if ctx.Err() != nil {
		return h.c.noAnswer("renew", h.name, contextErrors(ctx)...)
	}
	if err := l.Err(); err != nil {
		return err
	}
	begun := h.c.clock.Now()
	err := h.round(ctx, "renew", h.count(), true)
	h.traceRenewal(begun, true, err)
	if err != nil {
		return err
	}
	return l.Err() // it may have been given back meanwhile, and the hold go on
}

// Votes are the last answers of all nodes about this lock, by what the holder knows: Granted where it has the lock,
// with the TTL left there, Unknown where it may not have it, and everywhere if the hold was handed on.
func (l *Lease) Votes() []Vote {
	now := l.hold.c.clock.Now()
	votes := make([]Vote, len(l.hold.lanes))
	for i := range l.hold.lanes {
		votes[i] = l.hold.lanes[i].vote(l.hold.holder, now)
	}
	if l.wasHandedOn() {
		for i := range votes {
			votes[i] = Vote{Node: votes[i].Node}
		}
	}
	return votes
}

// vote tells what is known about the holder on this node.
func (l *lane) vote(holder string, now clock.Instant) Vote {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last
	v := Vote{l.node.name, last.outcome, last.holder, last.ttl, last.elapsed, last.err}
	if l.present && v.Outcome == Granted {
		v.Holder, v.TTL = holder, max(0, l.keyEnd.Sub(now))
	}
	return v
}

// close ends the handle with an error and returns what cancels its contexts and tells the tracer, to be called without
// hold.mu, which the caller has.
func (l *Lease) close(cause error) (cancels []func(error)) {
	if l.err != nil {
		return nil
	}
	l.err = cause
	l.done.happen()
	if i := slices.Index(l.hold.handles, l); i >= 0 {
		l.hold.handles = slices.Delete(l.hold.handles, i, i+1)
	}
	for _, cancel := range l.contexts {
		cancels = append(cancels, cancel)
	}
	l.contexts = nil
	if traced := l.traced; traced != nil {
		cancels = append(cancels, func(cause error) { l.hold.c.holdEnds(l, traced, cause) })
	}
	return cancels
}
