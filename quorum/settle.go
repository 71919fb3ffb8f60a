package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/redquorum/redquorum/script"
)

// Deciding about nodes without a record: is the cluster new, or have they forgotten? See guard.go.

// decide begins a decision, unless one is under way, and returns it.
func (g *guard) decide() *decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deciding == nil {
		d := &decision{done: make(chan struct{})}
		g.deciding = d
		g.group.Go(func() error {
			d.made = g.settle()
			g.mu.Lock()
			g.deciding = nil
			g.mu.Unlock()
			close(d.done)
			return nil
		})
	}
	return g.deciding
}

// decided waits for a decision, while ctx lasts, and tells whether one was made, by us or by somebody else: then it is worth
// asking again.
func (g *guard) decided(ctx context.Context) bool {
	d := g.decide()
	select {
	case <-d.done:
		return d.made
	case <-ctx.Done():
		return false
	case <-g.c.closing:
		return false
	}
}

// How long things take at most, in node timeouts: to tell a node what it is worth (two or three round trips), and to make
// all nodes of a new cluster settled (a first check, two looks, and that).
const (
	rulingTakes   = 2
	foundingTakes = 6
)

// settle looks at all nodes and decides about those without a record. It reports whether anything is decided now.
func (g *guard) settle() bool {
	timeout := g.c.cfg.NodeTimeout
	for {
		first := g.look()
		switch {
		case first.unsettled == 0:
			// Somebody else has decided, or whoever it was about is gone.
			return true
		case first.answered < g.c.need:
			// Too few to know how long the longest TTL is. The next request asks again.
			return false
		case first.isNew():
			// Not all looks were taken at one moment: while the first node was looked at the cluster may have been new,
			// and when the last one was, it may have been in use and that node forgotten everything. A second look that
			// finds the same incarnations, undecided still, proves a moment at which there was no lock anywhere.
			if second := g.look(); second.isNew() && second.same(first) {
				return g.rule(second, 0)
			}
		case first.founded(foundingTakes * timeout):
			// Somebody else is making a new cluster settled at this moment, and has not come to all nodes yet.
			if !g.c.rest(timeout / 4) {
				return false
			}
		default:
			return g.rule(first, g.granted())
		}
		select {
		case <-g.c.stopping:
			return false
		default:
		}
	}
}

// end lets no ruling begin any more, and waits for one that is under way, though not for ever. Were it cut off, some nodes of a
// new cluster would be settled and others not, and whoever comes next would take those for forgetful.
func (g *guard) end(longest time.Duration) {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	over := make(chan struct{})
	g.group.Go(func() error {
		g.rulings.Wait()
		close(over)
		return nil
	})
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}

// rule tells every node without a record what it is worth, and reports whether one of them took it in.
func (g *guard) rule(l look, quarantine time.Duration) bool {
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return false
	}
	g.rulings.Add(1)
	g.mu.Unlock()
	defer g.rulings.Done()
	var wait sync.WaitGroup
	made := make([]bool, len(l.records))
	for i, r := range l.records {
		if r == nil || r.Standing != script.StandingUnsettled {
			continue
		}
		wait.Go(func() {
			takes := rulingTakes * g.c.cfg.NodeTimeout
			ctx, cancel := context.WithTimeout(context.Background(), takes)
			defer cancel()
			err := g.c.nodes[i].Settle(ctx, *r, quarantine, g.c.clock.Now().Add(takes))
			if err != nil {
				g.c.log.Warn("a node without a record could not be given one", "node", g.c.nodes[i].name, "error", err)
			}
			made[i] = err == nil
		})
	}
	wait.Wait()
	for _, ok := range made {
		if ok {
			return true
		}
	}
	return false
}

// A look is what all nodes' records say.
type look struct {
	records             []*script.Record // nil where there was no answer
	answered, unsettled int
}

// look checks all nodes, if the guard is on.
func (g *guard) look() look {
	l := look{records: make([]*script.Record, len(g.c.nodes))}
	if g.c.cfg.NoRestartGuard {
		return l
	}
	var wait sync.WaitGroup
	for i, n := range g.c.nodes {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), g.c.cfg.NodeTimeout)
			defer cancel()
			if r, err := n.Check(ctx); err == nil {
				l.records[i] = &r
			}
		})
	}
	wait.Wait()
	for _, r := range l.records {
		if r == nil {
			continue
		}
		l.answered++
		if r.Standing == script.StandingUnsettled {
			l.unsettled++
		}
	}
	return l
}

// isNew tells whether every node answered and none had a record.
func (l look) isNew() bool { return l.unsettled == len(l.records) }

// same tells whether two looks found the same incarnations.
func (l look) same(other look) bool {
	for i, r := range l.records {
		if r.Incarnation != other.records[i].Incarnation {
			return false
		}
	}
	return true
}

// founded tells whether a node has been without quarantine for so short a time that the others may be about to get
// there. One whose clock was set back since tells no time at all, and is not waited for.
func (l look) founded(grace time.Duration) bool {
	for _, r := range l.records {
		if r != nil && r.Standing == script.StandingSettled && r.Quarantine == 0 && r.Age >= 0 && r.Age < grace {
			return true
		}
	}
	return false
}
