package integration_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// Of several who try at once on a free lock exactly one gets it, however the votes split. The next round begins at
// once, among what the losers of the last one are still taking back.
func TestRealExactlyOneOfSimultaneousTriesWins(t *testing.T) {
	const (
		rounds  = 300
		clients = 5
	)
	m := startMachines(t, 5)
	var c [clients]*quorum.Coordinator
	for i := range c {
		c[i] = m.Client(quorum.Config{TTL: time.Minute, NodeTimeout: 5 * time.Second})
	}
	var wins [clients]int
	for round := range rounds {
		var leases [clients]*quorum.Lease
		var errs [clients]error
		var tries sync.WaitGroup
		start := make(chan struct{})
		for i := range c {
			tries.Go(func() {
				<-start
				leases[i], errs[i] = c[i].TryAcquire(t.Context(), "stock")
			})
		}
		close(start)
		tries.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("round %d: both %d and %d got the lock", round, winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, quorum.ErrNotAcquired):
				t.Fatalf("round %d: client %d: %v, want not acquired", round, i, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody got the lock: %v", round, errs)
		}
		wins[winner]++
		mustRelease(t, leases[winner])
	}
	t.Logf("%d rounds, won by %v", rounds, wins)
	m.Clean(time.Second)
}

// Thousands of locks, taken and given back as fast as it goes: a release that overtook a late grant would leave a key.
func TestRealUncontendedCyclesLeaveNothing(t *testing.T) {
	const callers, each = 10, 500
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{TTL: time.Hour, NodeTimeout: patience})
	start := time.Now()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				// One name over and over, and a name of its own.
				for _, name := range []string{fmt.Sprint(caller), fmt.Sprint(caller, i)}[i%2 : i%2+1] {
					l, err := c.TryAcquire(t.Context(), name)
					if err != nil {
						t.Error(err)
						return
					}
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d cycles in %v", callers*each, time.Since(start))
	m.Clean(time.Second)
}

// A hundred goroutines share ten variables, each guarded by a lock and by nothing else: the race detector checks that
// a lock orders what is done under it, as a sync.Mutex does.
func TestRealLockOrdersWhatIsDoneUnderIt(t *testing.T) {
	const names, goroutines, each = 10, 100, 5
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	var counts [names]int
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			mutex := c.Mutex(fmt.Sprint("name ", g%names))
			for range each {
				mutex.Lock()
				counts[g%names]++
				mutex.Unlock()
			}
		})
	}
	all.Wait()
	for i, count := range counts {
		if want := goroutines / names * each; count != want {
			t.Errorf("name %d: counted to %d, want %d", i, count, want)
		}
	}
	m.Clean(time.Second)
}
