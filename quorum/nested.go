package quorum

import (
	"context"
	"errors"
	"time"
)

// nest adds a hold to a lock that the context holds already. It stands in no line: the lock is ours. While no quorum
// answers it waits like a first acquire, for at most as long as the lease lives.
func (l *Lease) nest(ctx context.Context, op string, t terms, wait bool) (*Lease, error) {
	h := l.hold
	var deadline <-chan time.Time
	if t.limited {
		timer := time.NewTimer(t.wait)
		defer timer.Stop()
		deadline = timer.C
	}
	for {
		inner, err := l.grow(ctx, op)
		if err == nil || !wait || !errors.Is(err, ErrNoQuorum) || (t.limited && t.wait == 0) {
			return inner, err
		}
		pause := time.NewTimer(h.c.cfg.NodeTimeout)
		select {
		case <-pause.C:
		case <-deadline:
			pause.Stop()
			return nil, err
		case <-ctx.Done(): // grow says so
			pause.Stop()
		case <-h.ends():
			pause.Stop()
		case <-l.handedOn():
			pause.Stop()
		}
	}
}

// grow tells the nodes a count that is one higher. If that fails, it tells them the old one; the lock itself is never
// touched.
func (l *Lease) grow(ctx context.Context, op string) (*Lease, error) {
	h := l.hold
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, h.c.noAnswer(op, h.name, contextErrors(ctx)...)
	case <-h.ends():
		return nil, h.check()
	case <-l.handedOn():
		return nil, ErrReleased
	}
	defer func() { <-h.turn }()
	if err := l.holds(); err != nil {
		return nil, err // of a hold that is somebody else's no node is told anything
	}
	if ctx.Err() != nil { // it may have ended while the turn was free
		return nil, h.c.noAnswer(op, h.name, contextErrors(ctx)...)
	}

	count := h.count()
	err := h.round(ctx, op, count+1, h.watched)
	if err == nil {
		var inner *Lease
		if inner, err = h.handle(l.token); err == nil {
			return inner, nil
		}
	}
	if h.check() == nil {
		h.restate(count)
	}
	return nil, err
}

// shrink tells the nodes the count after a handle was given back. It is sent whatever ctx does.
func (h *hold) shrink(ctx context.Context) error {
	result := make(chan error, 1)
	h.c.background.do(func() {
		h.turn <- struct{}{} // whoever has it is done within a few node timeouts
		defer func() { <-h.turn }()
		// The count of this moment: of several that shrink at once, the last one tells the truth.
		err := h.round(context.Background(), "release", h.count(), h.watched)
		if errors.Is(err, ErrReleased) {
			err = nil // the last handle was given back meanwhile, and this one with it
		}
		result <- err
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return h.c.noAnswer("release", h.name, contextErrors(ctx)...)
	}
}
