package quorum

import "context"

// Release gives this handle's hold back. The lock itself is released with the last handle.
//
// Release always sends, whatever its ctx; ctx only bounds how long it waits. It returns nil once a quorum of nodes
// confirmed that the holder is gone, and goes on in the background until the others have, or the TTL has passed. It
// returns ErrLost if the lease had ended before, ErrReleased if the handle was released before, and a *QuorumError
// (ErrNoQuorum, or ctx's error) if no quorum confirmed: the holder may then be on some nodes until its TTL runs out,
// and will not be restored.
//
// If others of this process wait for the lock, and no other handle has a hold of it, Release may hand the hold on to the
// first of them and tell no node; then it returns nil at once. That goes on for 50 ms at most after the nodes granted it,
// while half of the TTL is left, between callers who asked for the same TTL and neither [WithLeaseTime] nor MaxHold.
func (l *Lease) Release(ctx context.Context) error {
	c := l.hold.c
	if c.trace.release == nil {
		_, err := l.release(ctx)
		return err
	}
	ctx = c.trace.release.TraceReleaseStart(ctx, TraceReleaseStartData{Lease: l})
	begun := c.clock.Now()
	handed, err := l.release(ctx)
	c.trace.release.TraceReleaseEnd(ctx, TraceReleaseEndData{
		Lease: l, HandedOn: handed, Elapsed: c.clock.Now().Sub(begun), Err: err,
	})
	return err
}

// release is Release. It tells whether the hold was handed on.
func (l *Lease) release(ctx context.Context) (handed bool, err error) {
	h := l.hold
	if err := h.check(); err != nil {
		return false, l.Err()
	}
	if err := h.c.enter(); err != nil {
		return false, ErrReleased // Close releases
	}
	defer h.c.leave()

	if h.c.lines.handOff(l) {
		return true, nil
	}
	last, err := l.giveBack()
	if err != nil {
		return false, err
	}
	if !last {
		return false, h.shrink(ctx)
	}
	b := h.finish(ErrReleased, 0)
	if b == nil {
		return false, h.check() // it was lost just now
	}
	return false, h.c.gone(ctx, "release", h.name, b)
}

// giveBack ends this handle, unless it is the last one: that one ends with the hold.
func (l *Lease) giveBack() (last bool, err error) {
	h := l.hold
	h.mu.Lock()
	if l.err != nil {
		defer h.mu.Unlock()
		return false, l.err
	}
	if len(h.handles) == 1 {
		h.leaving = true // no nested hold comes in between
		h.mu.Unlock()
		return true, nil
	}
	cancels := l.close(ErrReleased)
	h.mu.Unlock()
	for _, cancel := range cancels {
		cancel(ErrReleased)
	}
	return false, nil
}

// gone waits until a quorum of nodes has confirmed that the holder is not there.
func (c *Coordinator) gone(ctx context.Context, op, name string, b *ballot) error {
	for {
		t := b.count()
		switch {
		case t.granted+t.held >= c.need: // held by another is gone, too
			return nil
		case t.failed+t.unknown > len(c.nodes)-c.need:
			return c.failure(op, name, b, ErrNoQuorum)
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return c.failure(op, name, b, contextErrors(ctx)...)
		}
	}
}
