package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Acquire takes the lock called name, waiting for as long as others hold it or no quorum of nodes answers.
//
// ctx bounds the waiting, never the lease. It ends with a *QuorumError that matches ctx's error; with WithWaitTime also
// with one that matches ErrNotAcquired or ErrNoQuorum. It fails at once when more than N - quorum nodes answer errors
// that waiting cannot cure (credentials, certificates, permissions), or when two of the addresses turn out to be one server.
//
// Under a context made by [Lease.Context] of a live lease of the same name it adds a hold to that lease instead: see
// there for what that means for goroutines.
//
// Within one process, waiters are served in the order in which they came.
func (c *Coordinator) Acquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	t, err := c.terms(name, opts)
	if err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	const op = "acquire"
	ctx, begun := c.asks(ctx, op, name)
	lease, err := c.acquire(ctx, op, name, t)
	c.asked(ctx, op, name, begun, lease, err)
	return lease, err
}

// acquire is Acquire, of a call that is in order.
func (c *Coordinator) acquire(ctx context.Context, op, name string, t terms) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, c.noAnswer(op, name, contextErrors(ctx)...)
	}
	if l := c.heldIn(ctx, name); l != nil {
		return l.nest(ctx, op, t, true)
	}
	if t.limited && t.wait == 0 {
		return c.try(ctx, op, name, t)
	}
	return c.lines.wait(ctx, c, name, t)
}

// TryAcquire takes the lock called name if nobody holds it. It waits for no holder, but of several that try at once on
// a free lock exactly one gets it, which may take some round trips.
//
// Errors: ErrNotAcquired if others hold it (the *QuorumError's RetryAfter says when to come back), ErrNoQuorum if too
// few nodes answered, or ctx's error.
func (c *Coordinator) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	t, err := c.terms(name, opts)
	if err != nil {
		return nil, err
	}
	if t.limited {
		return nil, errWaitOnTry
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	const op = "try-acquire"
	ctx, begun := c.asks(ctx, op, name)
	lease, err := c.tryAcquire(ctx, op, name, t)
	c.asked(ctx, op, name, begun, lease, err)
	return lease, err
}

// tryAcquire is TryAcquire, of a call that is in order.
func (c *Coordinator) tryAcquire(ctx context.Context, op, name string, t terms) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, c.noAnswer(op, name, contextErrors(ctx)...)
	}
	if l := c.heldIn(ctx, name); l != nil {
		return l.nest(ctx, op, t, false)
	}
	return c.try(ctx, op, name, t)
}

// tryBudget is how many node timeouts split votes may take, in all, before a try gives up.
const tryBudget = 4

// try makes one attempt, and further ones for as long as the vote is split: to say "not acquired" then would be wrong,
// since nobody may have it.
func (c *Coordinator) try(ctx context.Context, op, name string, t terms) (*Lease, error) {
	deadline := c.clock.Now().Add(tryBudget * c.cfg.NodeTimeout)
	var vote stalemate
	for round := 0; ; round++ {
		lease, v := c.tracedAttempt(ctx, op, name, t, 0)
		if v == nil {
			return lease, nil
		}
		if ctx.Err() != nil {
			v.classes, v.split = contextErrors(ctx), false
		}
		if !v.split || vote.settled(c, v) || !c.clock.Now().Before(deadline) {
			return nil, c.quorumError(op, name, v.votes, v.classes...)
		}
		pause := time.NewTimer(comeBack(v.roundTrip, c.cfg.NodeTimeout, round+rivals(v.votes), c.random))
		select {
		case <-pause.C:
			continue
		case <-ctx.Done():
			v.classes = contextErrors(ctx)
		case <-c.closing:
			v.classes = []error{ErrClosed}
		}
		pause.Stop()
		return nil, c.quorumError(op, name, v.votes, v.classes...)
	}
}

// Do acquires the lock, runs fn with a context that ends with the lease, and releases.
//
// fn runs on the caller's goroutine. The lock is released whatever fn does, panic and runtime.Goexit included. If the
// lease was lost while fn ran, the error matches ErrLost beside fn's own. A release that no quorum confirmed is logged
// and not an error: what fn did, it did under the lock.
func (c *Coordinator) Do(ctx context.Context, name string, fn func(ctx context.Context) error, opts ...Option) (err error) {
	if fn == nil {
		return errors.New("redquorum: Do with a nil function")
	}
	lease, err := c.Acquire(ctx, name, opts...)
	if err != nil {
		return err
	}
	defer func() {
		// ctx may be over, and the release is due all the same; it waits a few node timeouts at most.
		switch release := lease.Release(context.WithoutCancel(ctx)); {
		case errors.Is(release, ErrLost):
			err = errors.Join(err, fmt.Errorf("%q: %w", name, ErrLost))
		case release != nil && !errors.Is(release, ErrReleased): // fn may have released it
			c.log.Warn("release not confirmed", "name", name, "error", release)
		}
	}()
	return fn(lease.Context(ctx))
}
