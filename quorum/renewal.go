package quorum

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Renew is called by the watchdog when a renewal is due, or when a node was missed.
func (h *hold) Renew() {
	if h.c.enter() != nil {
		return
	}
	h.c.background.do(func() {
		defer h.c.leave()
		select {
		case h.turn <- struct{}{}:
		default:
			// Somebody is telling the nodes the state already. It may turn back before it has, so look again soon.
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.err == nil {
				h.watch.Set(h.cadence.Again(h.c.clock.Now(), 1), h.end)
			}
			return
		}
		defer func() { <-h.turn }()
		begun := h.c.clock.Now()
		err := h.round(context.Background(), "renew", h.count(), h.watched)
		if errors.Is(err, ErrReleased) {
			return // it is not needed any more
		}
		h.renewed(begun, false, err)
		h.tell(err)
	})
}

// tell logs that renewals have begun to fail, and that they work again. An outage makes those of every lease fail, again and
// again: after the first only who looks for it sees them. The caller has the turn.
func (h *hold) tell(err error) {
	if err == nil {
		if h.failing > 0 {
			h.c.log.Info("renewed again", "name", h.name, "holder", h.holder, "failed", h.failing)
		}
		h.failing = 0
		return
	}
	level := slog.LevelWarn
	if h.failing++; h.failing > 1 {
		level = slog.LevelDebug
	}
	h.c.log.Log(context.Background(), level, "renewal failed",
		"name", h.name, "holder", h.holder, "left", h.remaining(), "error", err)
}

// round tells every node the state of the hold: its holder, a count, a TTL, its token. It restores the lock where it is
// missing. If it extends the lease, the new validity counts from before the first send. The caller has the turn.
//
// A round counts only if a quorum answers before the old end: with an answer that comes later, nobody knows whether
// somebody else had the lock in between. So no request may take effect after the old end either.
func (h *hold) round(ctx context.Context, op string, count int, extend bool) error {
	h.mu.Lock()
	err, end, start := h.err, h.end, h.start
	h.mu.Unlock()
	if err != nil {
		return err
	}
	now := h.c.clock.Now()
	ttl := h.ttl
	if !extend {
		// What a node is told that missed the lease: as much as the key has left elsewhere.
		ttl = start.Add(h.ttl).Sub(now).Truncate(time.Millisecond)
	}
	if ttl < time.Millisecond || !now.Before(end) {
		if err := h.check(); err != nil {
			return err
		}
		return h.c.noAnswer(op, h.name, ErrNoQuorum)
	}

	b := newBallot(h.c.nodes)
	h.putAll(b, errand{
		req:   script.Renew{Name: h.name, Holder: h.holder, Count: count, TTL: ttl, Token: h.fence},
		until: end, begun: now, ttl: ttl,
	})
	defer b.whenComplete(func() {
		h.verify(b)
		h.heal()
	})
	for {
		t := b.count()
		switch {
		case t.granted >= h.c.need:
			return h.extended(now, extend)
		case t.held > len(h.c.nodes)-h.c.need:
			// No quorum can be ours any more.
			h.lose(LossOutvoted)
			return h.check()
		case !t.possible(h.c.need):
			if err := h.check(); err != nil {
				return err
			}
			return h.c.failure(op, h.name, b, ErrNoQuorum)
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return h.c.failure(op, h.name, b, contextErrors(ctx)...)
		case <-h.over:
			return h.check()
		}
	}
}

// extended takes in that a quorum answered a round which started at start.
func (h *hold) extended(start clock.Instant, extend bool) error {
	h.mu.Lock()
	inTime := h.err == nil && h.c.clock.Now().Before(h.end)
	if inTime && extend {
		end := clock.Validity(start, h.ttl, h.c.drift(h.ttl))
		if !h.limit.IsZero() {
			end = clock.Earlier(end, h.limit)
		}
		if end.After(h.end) {
			h.start, h.end = start, end
		}
		h.watch.Set(h.renewal(), h.end)
	}
	h.mu.Unlock()
	if !inTime {
		return h.check()
	}
	return nil
}

// heal arranges that nodes which missed the lease, lost it, or store a lower token are asked again soon: a bare
// majority should not stand alone until the next regular renewal. It is called when all nodes have answered.
func (h *hold) heal() {
	whole := h.whole(h.fence)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	now, next := h.c.clock.Now(), h.renewal()
	overdue := !next.IsZero() && !next.After(now) // the round that was due has failed, or did not count
	if whole && !overdue {
		h.misses = 0
	} else {
		h.misses++
	}
	soon := h.cadence.Again(now, max(1, h.misses))
	if overdue || !whole && (next.IsZero() || soon.Before(next)) {
		next = soon
	}
	h.watch.Set(next, h.end)
}

// hurry arranges that the nodes are told the state of the hold now: its votes may be worth less than they were.
func (h *hold) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil && h.watch != nil {
		h.watch.Set(h.c.clock.Now(), h.end)
	}
}

// verify ends a lease that has lost more nodes than a quorum can spare, where only the answers after the decision show
// it.
func (h *hold) verify(b *ballot) {
	if b.count().held > len(h.c.nodes)-h.c.need {
		h.lose(LossOutvoted)
	}
}

// restate tells every node a count, without waiting for the answers.
func (h *hold) restate(count int) {
	h.mu.Lock()
	end, left := h.end, h.start.Add(h.ttl)
	h.mu.Unlock()
	now := h.c.clock.Now()
	ttl := left.Sub(now).Truncate(time.Millisecond)
	if ttl < time.Millisecond {
		return
	}
	b := newBallot(h.c.nodes)
	h.putAll(b, errand{
		req:   script.Renew{Name: h.name, Holder: h.holder, Count: count, TTL: ttl, Token: h.fence},
		until: end, begun: now, ttl: ttl,
	})
	b.whenComplete(h.heal)
}
