package quorum

import (
	"context"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// tracers are a Config's tracer, by what it implements; all of them nil if there is none.
type tracers struct {
	acquire     AcquireTracer
	wait        WaitTracer
	attempt     AttemptTracer
	hold        HoldTracer
	release     ReleaseTracer
	renewal     RenewalTracer
	loss        LossTracer
	vote        VoteTracer
	node        NodeTracer
	coordinator CoordinatorTracer
}

// newTracers finds out what a tracer implements.
func newTracers(t AcquireTracer) (all tracers) {
	all.acquire = t
	all.wait, _ = t.(WaitTracer)
	all.attempt, _ = t.(AttemptTracer)
	all.hold, _ = t.(HoldTracer)
	all.release, _ = t.(ReleaseTracer)
	all.renewal, _ = t.(RenewalTracer)
	all.loss, _ = t.(LossTracer)
	all.vote, _ = t.(VoteTracer)
	all.node, _ = t.(NodeTracer)
	all.coordinator, _ = t.(CoordinatorTracer)
	return all
}

// asks tells the tracer that a call begins which asks for a lock.
func (c *Coordinator) asks(ctx context.Context, op, name string) (context.Context, clock.Instant) {
	if c.trace.acquire == nil {
		return ctx, clock.Instant{}
	}
	return c.trace.acquire.TraceAcquireStart(ctx, TraceAcquireStartData{Op: op, Name: name}), c.clock.Now()
}

// asked tells the tracer how such a call ended, and that its lease begins.
func (c *Coordinator) asked(ctx context.Context, op, name string, begun clock.Instant, l *Lease, err error) {
	if c.trace.acquire == nil {
		return
	}
	data := TraceAcquireEndData{Op: op, Name: name, Lease: l, Elapsed: c.clock.Now().Sub(begun), Err: err}
	if l != nil {
		data.Nested, data.HandedOn = l.nested, l.handed
		c.holdBegins(ctx, l)
	}
	c.trace.acquire.TraceAcquireEnd(ctx, data)
}

// A tracedHold is what the tracer has been told of a lease.
type tracedHold struct {
	ctx   context.Context
	begun clock.Instant
}

// holdBegins tells the tracer that a lease begins; of one that has ended meanwhile, that as well.
func (c *Coordinator) holdBegins(ctx context.Context, l *Lease) {
	if c.trace.hold == nil {
		return
	}
	// It outlives the call.
	ctx = c.trace.hold.TraceHoldStart(context.WithoutCancel(ctx), TraceHoldStartData{Lease: l})
	traced := &tracedHold{ctx: ctx, begun: c.clock.Now()}
	l.hold.mu.Lock()
	err := l.err
	if err == nil {
		l.traced = traced
	}
	l.hold.mu.Unlock()
	if err != nil {
		c.holdEnds(l, traced, err)
	}
}

// holdEnds tells the tracer that a lease has ended.
func (c *Coordinator) holdEnds(l *Lease, traced *tracedHold, err error) {
	data := TraceHoldEndData{Lease: l, Elapsed: c.clock.Now().Sub(traced.begun), Err: err}
	if err == ErrLost { //nolint:errorlint // what a lease ends with is one or the other
		data.Loss = l.hold.loss // written before the lease ended, and never again
	}
	c.trace.hold.TraceHoldEnd(traced.ctx, data)
}

// traced is what the tracer wants to know again about one of the leases of a hold.
func (h *hold) traced() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first *tracedHold
	for _, l := range h.handles {
		if l.traced != nil && (first == nil || l.traced.begun.Before(first.begun)) {
			first = l.traced
		}
	}
	if first == nil {
		return context.Background()
	}
	return first.ctx
}

// traceRenewal tells the tracer how a renewal ended that began at an instant.
func (h *hold) traceRenewal(begun clock.Instant, asked bool, err error) {
	if h.c.trace.renewal == nil {
		return
	}
	h.c.trace.renewal.TraceRenewal(h.traced(), TraceRenewalData{
		Name: h.name, Holder: h.holder, Asked: asked, Elapsed: h.c.clock.Now().Sub(begun), Left: h.remaining(), Err: err,
	})
}

// tracedAttempt is one attempt, of which the tracer is told.
func (c *Coordinator) tracedAttempt(ctx context.Context, op, name string, t terms, more int) (*Lease, *verdict) {
	if c.trace.attempt == nil {
		return c.attempt(ctx, name, t, more)
	}
	begun := c.clock.Now()
	lease, v := c.attempt(ctx, name, t, more)
	data := TraceAttemptData{Op: op, Name: name, Elapsed: c.clock.Now().Sub(begun)}
	if v != nil {
		data.Split, data.Err = v.split, c.quorumError(op, name, v.votes, v.classes...)
	}
	c.trace.attempt.TraceAttempt(ctx, data)
	return lease, v
}

// waits takes in that a call could not have the lock at once, with so many of this process before it.
func (w *waiter) waits(place int) {
	if w.waiting.Swap(true) || w.c.trace.wait == nil {
		return
	}
	w.ctx = w.c.trace.wait.TraceWaitStart(w.ctx, TraceWaitStartData{Name: w.line.name, Place: place})
	w.begun = w.c.clock.Now()
}

// waited tells the tracer how a wait ended, if there was one.
func (w *waiter) waited(l *Lease, err error) {
	if w.begun.IsZero() {
		return
	}
	w.c.trace.wait.TraceWaitEnd(w.ctx, TraceWaitEndData{
		Name: w.line.name, HandedOn: l != nil && l.handed, Elapsed: w.c.clock.Now().Sub(w.begun), Err: err,
	})
}

// voted takes in what a node said to a request: what that tells about the node, and for the tracer.
func (c *Coordinator) voted(n *voter, req script.Request, a *answer) {
	c.heard(n, a)
	if c.trace.vote != nil {
		c.trace.vote.TraceVote(TraceVoteData{Op: asking(req), Vote: a.vote})
	}
}

// asking is what a request is about.
func asking(req script.Request) string {
	switch req := req.(type) {
	case script.Acquire:
		return "acquire"
	case script.Raise:
		return "raise"
	case script.Renew:
		return "renew"
	case script.Release:
		if req.Payload == script.RolledBack {
			return "rollback"
		}
		return "release"
	case script.Revoke:
		return "revoke"
	case script.ForceRelease:
		return "force-release"
	case script.Inspect:
		return "inspect"
	case script.Probe:
		return "ping"
	}
	return "other"
}
