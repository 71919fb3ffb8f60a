package integration_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/quorum"
)

// Names come and go, are waited for and given back, and none of them leaves anything in the process.
func TestRealNothingGrowsWithHistory(t *testing.T) {
	const round, rounds, atOnce = 1000, 15, 50
	const mostIdle = 256 // goroutines that a coordinator keeps for what is to come
	m := startMachines(t, 3)
	patient := quorum.Config{TTL: time.Minute, NodeTimeout: 5 * time.Second} // fifty callers at once, on a busy machine
	a, b := m.Client(patient), m.Client(patient)
	names := 0
	cycle := func() {
		var all sync.WaitGroup
		for range atOnce {
			first := names
			names += round / atOnce
			all.Go(func() {
				for i := first; i < first+round/atOnce; i++ {
					l := mustAcquire(t, a, t.Context(), fmt.Sprint("name ", i))
					got := acquiring(b, t.Context(), l.Name())
					mustRelease(t, l)
					r := <-got
					if r.err != nil {
						t.Error(r.err)
						return
					}
					mustRelease(t, r.lease)
				}
			})
		}
		all.Wait()
		m.quiet()
		for _, c := range []*quorum.Coordinator{a, b} {
			m.eventually("no hold is left", func() bool { return c.Stats().Held == 0 })
		}
	}
	cycle() // connections, buffers, goroutines that are kept
	before, _, _ := quorumtest.Footprint()
	// Buffers grow now and then, and the process has other things to do. What is kept of a name is kept in every round.
	last, each := before, math.Inf(1)
	for i := 0; i < rounds && each > 40; i++ { // less than a name and its pointers
		cycle()
		now, _, _ := quorumtest.Footprint()
		last, each = now, float64(now-last)/round
	}
	if each > 40 {
		t.Errorf("in each of %d rounds more than 40 bytes were kept of a name, %.0f in the last", rounds, each)
	}
	_, _, more := quorumtest.Footprint()
	if most := 2*mostIdle + 100; more > most {
		t.Errorf("%d goroutines, want %d at most, most of them idle ones of two coordinators", more, most)
	}
}
