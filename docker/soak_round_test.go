package docker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/quorum"
)

// A round is every fault once, in an order that is drawn, and the clients that live through it.
//
// The faults that are for the restart guard come first. Those of the nodes are dealt into two rows, those of the network are a third. At most two of five nodes are faulty
// besides what the network does, none has two faults at once, and no more than two have forgotten, or are about to,
// within a guard time: the assumptions hold all the time.
type round struct {
	*soak
	seed   uint64
	log    *history.Recorder
	start  time.Time
	healed atomic.Bool
	err    error // of the faults
	// forgetful has room for as many as may forget within a guard time.
	forgetful chan struct{}

	mu    sync.Mutex
	taken [soakNodes]bool
	over  []affliction

	watchMu sync.Mutex
	watches map[string]*watch // by the node's name
}

// An affliction is a fault that is over.
type affliction struct {
	kind     string
	from, to time.Duration
}

func newRound(s *soak) *round {
	return &round{
		soak: s, seed: s.seed + uint64(s.rounds) - 1, log: &history.Recorder{},
		forgetful: make(chan struct{}, soakNodes-soakQuorum), watches: map[string]*watch{},
	}
}

func (r *round) now() time.Duration { return time.Since(r.start) }

// draws returns one of several sources of chance.
func (r *round) draws(which int) *rand.Rand { return rand.New(rand.NewPCG(r.seed, uint64(which))) }

// outlived tells whether a lease began before some fault, and was alive after it.
func (r *round) outlived(from, to time.Duration) bool {
	for _, a := range r.over {
		if from < a.from && a.to < to {
			return true
		}
	}
	return false
}

// play lives through the round. It returns when everything has ended and been recorded.
func (r *round) play() {
	r.start = time.Now()
	ctx, giveUp := context.WithCancel(context.Background()) // of those who wait as long as it takes
	defer giveUp()
	resource := &resource{last: map[string]int64{}, log: r.log, now: r.now}
	var all sync.WaitGroup
	clients := make([]*soaked, soakClients)
	for i := range clients {
		locks, err := quorum.Open(quorum.Config{
			TTL: soakTTL, NodeTimeout: soakNodeTimeout, Logger: r.soak.log.logger(i), Tracer: spy{r},
		}, r.cluster.URLs()...)
		ok(r.t, err)
		clients[i] = &soaked{round: r, id: i, locks: locks, resource: resource, forever: ctx}
		clients[i].begin(&all)
	}
	r.err = r.befall()
	r.log.Record(history.Event{At: r.now(), Kind: history.Healed})
	r.healed.Store(true)
	defer time.AfterFunc(2*patience, giveUp).Stop() // which Liveness reports
	all.Wait()
	for _, c := range clients {
		for _, name := range soakNames {
			all.Go(func() { c.last(name) })
		}
	}
	all.Wait()
	for _, c := range clients {
		r.err = errors.Join(r.err, c.locks.Close())
		c.leases.Wait()
	}
}

// befall deals the faults, and returns when all is well again.
func (r *round) befall() error {
	g := r.draws(0)
	rows := make([][]fault, 3)
	for n, i := range g.Perm(len(nodeFaults)) {
		rows[n%2] = append(rows[n%2], nodeFaults[i])
	}
	for _, i := range g.Perm(len(netFaults)) {
		rows[2] = append(rows[2], netFaults[i])
	}
	for _, i := range g.Perm(len(guardFaults)) { // alone: with another fault there would be no quorum
		if err := r.strike(guardFaults[i], g); err != nil {
			return fmt.Errorf("%s: %w", guardFaults[i].name, err)
		}
	}
	var all errgroup.Group
	for i, row := range rows {
		all.Go(func() error {
			g := r.draws(1 + i)
			for _, f := range row {
				time.Sleep(soakTTL/20 + upTo(g, soakTTL/4))
				if err := r.strike(f, g); err != nil {
					return fmt.Errorf("%s: %w", f.name, err)
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// strike lets one fault happen, from its begin to its end.
func (r *round) strike(f fault, g *rand.Rand) error {
	nodes, length := 1, soakTTL/3+upTo(g, soakTTL/2)
	if f.nodes > 0 {
		nodes, length = f.nodes, f.length+upTo(g, soakTTL/4)
	}
	order := g.Perm(soakNodes)
	if f.forgets {
		r.forgetful <- struct{}{}
	}
	victims, err := r.take(order, nodes)
	if err != nil {
		return err
	}
	from := r.now()
	if err := r.through(f, victims, length); err != nil {
		return err
	}
	r.mu.Lock()
	r.over = append(r.over, affliction{f.name, from, r.now()})
	r.mu.Unlock()
	// What is told late is told of this fault, and not of the next one.
	time.Sleep(2 * soakNodeTimeout)
	if f.forgets {
		// All know by now that it forgot. What it may have forgotten is over after this time.
		time.AfterFunc(soakTTL, func() { <-r.forgetful })
	}
	return r.leave(victims)
}

// through takes the victims through a fault, until it has been noticed.
func (r *round) through(f fault, victims []*victim, length time.Duration) error {
	where := make([]string, len(victims))
	watches := make([]*watch, len(victims))
	for i, v := range victims {
		where[i] = fmt.Sprint("node ", v.i)
		watches[i] = r.watch(v.i, f)
		defer r.unwatch(v.i)
	}
	all := func(step func(*victim) error) error {
		for _, v := range victims {
			if err := step(v); err != nil {
				return err
			}
		}
		return nil
	}
	note := func(what string) {
		r.log.Record(history.Event{At: r.now(), Kind: history.Note, Text: strings.Join(where, ", ") + " " + what})
	}
	// noticed tells whether each of them has been seen by now.
	noticed := func() (bool, error) {
		for i, v := range victims {
			if f.told != nil {
				if seen, err := f.told(v); err != nil || !seen {
					return false, err
				}
			} else if !r.saw(watches[i]) && (v.first || !f.first) {
				return false, nil
			}
		}
		return true, nil
	}
	if f.told != nil { // it goes by what was before
		if _, err := noticed(); err != nil {
			return err
		}
	}
	note(f.name)
	if err := all(f.begin); err != nil {
		return err
	}
	began := time.Now()
	for last := began; ; time.Sleep(often / 10) {
		seen, err := noticed()
		if err != nil {
			return err
		}
		if time.Since(began) >= length && (seen || f.forgets) {
			break
		}
		if time.Since(began) > patience {
			return errors.New("nobody noticed")
		}
		if f.every > 0 && time.Since(last) >= f.every {
			last = time.Now()
			if err := all(f.begin); err != nil {
				return err
			}
		}
	}
	if f.end != nil {
		if err := all(f.end); err != nil {
			return err
		}
	}
	note("no longer " + f.name)
	for i, v := range victims { // what was seen may be from before the last time
		if f.forgets {
			watches[i] = r.watch(v.i, f)
		}
	}
	for ended := time.Now(); f.forgets; time.Sleep(often / 10) {
		if seen, err := noticed(); err != nil || seen {
			return err
		}
		if time.Since(ended) > patience {
			return errors.New("nobody noticed that it forgot")
		}
	}
	return nil
}

// take takes n nodes that have no fault, the first ones in this order. There always are: the rows of the nodes have one
// each at most, that of the network three.
func (r *round) take(order []int, n int) ([]*victim, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var victims []*victim
	for _, i := range order {
		if r.taken[i] || len(victims) == n {
			continue
		}
		admin, err := r.admin(i)
		if err != nil {
			return nil, err
		}
		r.taken[i] = true
		victims = append(victims, &victim{c: r.cluster, i: i, admin: admin, first: len(victims) == 0})
	}
	if len(victims) < n {
		return nil, fmt.Errorf("%d nodes are without a fault, want %d", len(victims), n)
	}
	return victims, nil
}

func (r *round) leave(victims []*victim) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, v := range victims {
		r.taken[v.i] = false
		errs = append(errs, v.admin.Close())
	}
	return errors.Join(errs...)
}

// A watch looks at the votes of one node.
type watch struct {
	fault
	n    int // votes in a row that show the fault
	seen bool
}

func (r *round) name(i int) string { return strings.TrimPrefix(r.cluster.URLs()[i], "redis://") }

func (r *round) watch(i int, f fault) *watch {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	w := &watch{fault: f}
	r.watches[r.name(i)] = w
	return w
}

func (r *round) unwatch(i int) {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	delete(r.watches, r.name(i))
}

func (r *round) saw(w *watch) bool {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	return w.seen
}

// spy is told of every vote by the clients.
type spy struct{ *round }

func (spy) TraceAcquireStart(ctx context.Context, _ quorum.TraceAcquireStartData) context.Context {
	return ctx
}

func (spy) TraceAcquireEnd(context.Context, quorum.TraceAcquireEndData) {}

func (s spy) TraceVote(data quorum.TraceVoteData) {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	w := s.watches[data.Vote.Node]
	if w == nil || w.shows == nil {
		return
	}
	if w.n++; !w.shows(data.Vote.Err) {
		w.n = 0
	}
	w.seen = w.seen || w.n >= max(1, w.inARow)
}

// upTo draws a duration below d.
func upTo(g *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(g.Float64() * float64(d))
}
