package quorum

import "context"

// Context returns a copy of parent that is also cancelled, with cause ErrLost or ErrReleased, when the lease ends. Like
// the lease, it reads the clock whenever it is asked: after a suspend it is done before any timer could say so. A
// context derived from it (by context.WithTimeout, say) does not, and is cancelled a moment later.
//
// It carries the lease: acquiring the same name under it, with the same coordinator, adds a hold instead of waiting.
// So goroutines that share it share the hold and do NOT exclude each other; give those that must a context without the
// lease, by [WithoutLease].
func (l *Lease) Context(parent context.Context) context.Context {
	inner, cancel := context.WithCancelCause(parent)
	ctx := &leaseContext{Context: inner, lease: l, cancel: cancel}
	l.hold.mu.Lock()
	if err := l.err; err != nil {
		l.hold.mu.Unlock()
		cancel(err)
		return ctx
	}
	if l.contexts == nil {
		l.contexts = make(map[*leaseContext]func(error))
	}
	l.contexts[ctx] = cancel
	l.hold.mu.Unlock()
	// A context whose parent ended first must not stay with the lease.
	context.AfterFunc(inner, func() {
		l.hold.mu.Lock()
		defer l.hold.mu.Unlock()
		delete(l.contexts, ctx)
	})
	return ctx
}

// leaseContext is a context that ends with a lease. It wraps a cancelCtx of package context and has the same Done
// channel, so contexts derived from it need no goroutine.
type leaseContext struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

// look ends the context if the lease is over. Somebody else may have ended the lease a moment ago, and not have come to
// this context yet: whoever looks does not wait for that.
func (c *leaseContext) look() {
	if err := c.lease.Err(); err != nil {
		c.cancel(err)
	}
}

// Done looks at the clock first, and so ends the context if the lease is over.
func (c *leaseContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// Err looks at the clock first.
func (c *leaseContext) Err() error {
	c.look()
	return c.Context.Err()
}

// heldKey is the key under which a context carries the innermost lease of a name.
type heldKey struct {
	c    *Coordinator
	name string
}

// leaseKey is the key under which a context carries its innermost lease.
type leaseKey struct{}

// LeaseFrom returns the lease that ctx carries, for its token for one: the innermost one, if there are several. It
// returns nil if there is none.
func LeaseFrom(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}

// Value answers for the lease's own name. It looks at the clock too, because that is the way context.Cause asks.
func (c *leaseContext) Value(key any) any {
	c.look()
	switch key {
	case leaseKey{}:
		return c.lease
	case heldKey{c.lease.hold.c, c.lease.hold.name}:
		return c.lease
	}
	return c.Context.Value(key)
}

// WithoutLease returns a copy of ctx that carries no lease: an acquire under it is one by a stranger, who waits. It is
// still cancelled with ctx.
func WithoutLease(ctx context.Context) context.Context { return strangerContext{ctx} }

type strangerContext struct{ context.Context }

func (c strangerContext) Value(key any) any {
	switch key.(type) {
	case heldKey, leaseKey:
		return nil
	}
	return c.Context.Value(key)
}

// heldIn returns the lease of a name that a context carries, if its hold is still held, by this handle or one beside it;
// nil if there is none. What was handed on to somebody else is not held any more.
func (c *Coordinator) heldIn(ctx context.Context, name string) *Lease {
	l, _ := ctx.Value(heldKey{c, name}).(*Lease)
	if l == nil || l.holds() != nil {
		return nil
	}
	return l
}
