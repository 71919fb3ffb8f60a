package quorum

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Renewals.
//
// One goroutine sends the renewals of all leases that are due; none waits for their answers. Where many are due at once they
// share the round trips of each node (node/stream.go), and the watchdog lets those that are due soon go along
// (renew/watchdog.go).

// renewals are the leases that are to be renewed now.
type renewals struct {
	mu      sync.Mutex
	due     []*hold
	running bool
}

// Renew is called by the watchdog when a renewal is due, or when a node was missed. The watchdog must not wait for a node's
// connection, or it would be late for somebody's end.
func (h *hold) Renew() {
	if h.c.enter() != nil {
		return
	}
	r := &h.c.renewals
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = append(r.due, h)
	if !r.running {
		r.running = true
		h.c.background.do(r.run)
	}
}

func (r *renewals) run() {
	for {
		r.mu.Lock()
		due := r.due
		r.due = nil
		r.running = len(due) > 0
		r.mu.Unlock()
		if len(due) == 0 {
			return
		}
		for _, h := range due {
			h.renew()
		}
	}
}

// renew begins a renewal.
func (h *hold) renew() {
	select {
	case h.turn <- struct{}{}:
	default:
		defer h.c.leave()
		// Somebody is telling the nodes the state already. It may turn back before it has, so look again soon.
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err == nil {
			h.watch.Set(h.cadence.Again(h.c.clock.Now(), 1), h.end)
		}
		return
	}
	h.renewing = h.c.clock.Now()
	_, _ = h.begin("renew", h.count(), h.watched, h.renewed) // which is told
}

// renewed ends a renewal.
func (h *hold) renewed(err error) {
	if !errors.Is(err, ErrReleased) { // else it was not needed any more
		h.traceRenewal(h.renewing, false, err)
		h.tell(err)
	}
	<-h.turn
	h.c.leave()
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

// A round tells every node the state of the hold: its holder, a count, a TTL, its token. It restores the lock where it is
// missing. If it extends the lease, the new validity counts from before the first send.
//
// A round counts only if a quorum answers before the old end: with an answer that comes later, nobody knows whether
// somebody else had the lock in between. So no request may take effect after the old end either.
type round struct {
	*ballot
	h      *hold
	op     string
	start  clock.Instant
	extend bool

	then func(error) // is told how it ended, where nobody waits
	over atomic.Bool
}

// begin begins a round; then is told how it ended, if it is not nil. The caller has the turn.
func (h *hold) begin(op string, count int, extend bool, then func(error)) (*round, error) {
	h.mu.Lock()
	err, end, start := h.err, h.end, h.start
	h.mu.Unlock()
	now := h.c.clock.Now()
	ttl := h.ttl
	if !extend {
		// What a node is told that missed the lease: as much as the key has left elsewhere.
		ttl = start.Add(h.ttl).Sub(now).Truncate(time.Millisecond)
	}
	if err == nil && (ttl < time.Millisecond || !now.Before(end)) {
		if err = h.check(); err == nil {
			err = h.c.noAnswer(op, h.name, ErrNoQuorum)
		}
	}
	if err != nil {
		if then != nil {
			then(err)
		}
		return nil, err
	}
	r := &round{ballot: h.c.newBallot(), h: h, op: op, start: now, extend: extend, then: then}
	h.put(&errand{
		req:   script.Prepare(script.Renew{Name: h.key, Holder: h.holder, Count: count, TTL: ttl, Token: h.fence}),
		until: end, begun: now, ttl: ttl, to: r,
	})
	return r, nil
}

// round makes a round and waits for it. The caller has the turn.
func (h *hold) round(ctx context.Context, op string, count int, extend bool) error {
	r, err := h.begin(op, count, extend, nil)
	if err != nil {
		return err
	}
	defer r.afterwards()
	for !r.decided() {
		select {
		case <-r.changed:
		case <-ctx.Done():
			return h.c.failure(op, h.name, r.ballot, contextErrors(ctx)...)
		case <-h.ends():
			return h.check()
		}
	}
	return r.end()
}

// put takes in an answer.
func (r *round) put(i int, a answer) {
	r.h.obey(a)
	r.ballot.put(i, a)
	if r.then != nil && r.decided() && r.over.CompareAndSwap(false, true) {
		r.then(r.end())
		r.afterwards()
	}
}

// decided tells whether further answers change nothing.
func (r *round) decided() bool {
	t := r.count()
	return t.granted >= r.need || r.outvoted(t) || !t.possible(r.need)
}

// outvoted tells whether no quorum can be ours any more.
func (r *round) outvoted(t tally) bool { return t.held > len(r.h.c.nodes)-r.need }

// end takes in how a round was decided.
func (r *round) end() error {
	h, t := r.h, r.count()
	if t.granted >= r.need {
		return h.extended(r.start, r.extend)
	}
	if r.outvoted(t) {
		h.lose(LossOutvoted)
	}
	if err := h.check(); err != nil {
		return err
	}
	return h.c.failure(r.op, h.name, r.ballot, ErrNoQuorum)
}

// afterwards looks at the answers that come after the decision.
func (r *round) afterwards() {
	r.whenComplete(func() {
		r.h.verify(r.ballot)
		r.h.heal()
	})
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

// obey ends the lease if a node has been told of a force-release. That one answer is enough, whatever the others say and
// however late it comes: the others may have lost the revocation, and nobody knows who holds the lock by now.
func (h *hold) obey(a answer) {
	if a.reply.Status == script.Revoked {
		h.lose(LossRevoked)
	}
}

// restatement takes the answers to a count that nobody waits for.
type restatement struct {
	*ballot
	h *hold
}

func (r restatement) put(i int, a answer) {
	r.h.obey(a)
	r.ballot.put(i, a)
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
	b := h.c.newBallot()
	h.put(&errand{
		req:   script.Prepare(script.Renew{Name: h.key, Holder: h.holder, Count: count, TTL: ttl, Token: h.fence}),
		until: end, begun: now, ttl: ttl, to: restatement{b, h},
	})
	b.whenComplete(h.heal)
}
