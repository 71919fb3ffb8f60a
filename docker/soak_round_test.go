package docker_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/quorum"
)

// A round is every fault once, in an order that is drawn, and the clients that live through it.
//
// The faults that are for the restart guard come first. Those of the nodes are dealt into two rows beside each other,
// those of the network are a third. At most two of five nodes are faulty besides what the network does, none has two
// faults at once, and no more than two have forgotten, or are about to, within a guard time: the assumptions hold all
// the time.
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
	resource := history.NewGuarded(r.log, r.now)
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
			return err
		}
	}
	var all errgroup.Group
	for i, row := range rows {
		all.Go(func() error {
			g := r.draws(1 + i)
			for _, f := range row {
				time.Sleep(soakTTL/20 + upTo(g, soakTTL/4))
				if err := r.strike(f, g); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// upTo draws a duration below d.
func upTo(g *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(g.Float64() * float64(d))
}
