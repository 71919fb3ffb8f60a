package quorum_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// What it costs to hold and to wait, in the memory of the process.

// footprint is what the process has in use.
func footprint() (heap, stacks int64, goroutines int) {
	var m runtime.MemStats
	for range 3 { // what one collection finalises the next one frees
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()
}

// Names come and go, are waited for and given back, and none of them leaves anything in the process.
func TestRealNothingGrowsWithHistory(t *testing.T) {
	const round, rounds, atOnce = 1000, 15, 50
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
			m.eventually("no line is left", func() bool { return quorum.LinesOf(c) == 0 })
			m.eventually("no hold is left", func() bool { return quorum.HoldsOf(c) == 0 })
		}
	}
	cycle() // connections, buffers, goroutines that are kept
	before, _, _ := footprint()
	// Buffers grow now and then, and the process has other things to do. What is kept of a name is kept in every round.
	last, each := before, math.Inf(1)
	for i := 0; i < rounds && each > 40; i++ { // less than a name and its pointers
		cycle()
		now, _, _ := footprint()
		last, each = now, float64(now-last)/round
	}
	if each > 40 {
		t.Errorf("in each of %d rounds more than 40 bytes were kept of a name, %.0f in the last", rounds, each)
	}
	_, _, more := footprint()
	if most := 2*quorum.MostIdle + 100; more > most {
		t.Errorf("%d goroutines, want %d at most, most of them idle ones of two coordinators", more, most)
	}
}

// BenchmarkMemory reports bytes and goroutines of the client for each lease that is held, each goroutine that waits for one
// name, and each name that is waited for.
func BenchmarkMemory(b *testing.B) {
	const many = 10_000
	servers := redisserver.StartN(b, 5)
	open := func(b *testing.B) *quorum.Coordinator {
		b.Helper()
		c, err := quorum.Open(quorum.Config{TTL: 10 * time.Minute, NodeTimeout: 10 * time.Second}, redisserver.URLs(servers)...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		return c
	}
	acquire := func(b *testing.B, c *quorum.Coordinator, name string) *quorum.Lease {
		b.Helper()
		l, err := c.Acquire(b.Context(), name)
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	hold := func(b *testing.B, c *quorum.Coordinator, prefix string) {
		b.Helper()
		for i := range many {
			acquire(b, c, fmt.Sprint(prefix, i))
		}
	}
	// measure compares the process before and after a preparation that leaves many of something there.
	measure := func(b *testing.B, prepare func(c *quorum.Coordinator)) {
		b.Helper()
		c := open(b)
		_ = acquire(b, c, "warm").Release(b.Context())
		heap, stacks, goroutines := footprint()
		prepare(c)
		heap2, stacks2, goroutines2 := footprint()
		b.ReportMetric(float64(heap2-heap)/many, "heap-B/each")
		b.ReportMetric(float64(stacks2-stacks)/many, "stack-B/each")
		b.ReportMetric(float64(goroutines2-goroutines)/many, "goroutines/each")
		b.ReportMetric(0, "ns/op")
	}
	waiters := func(b *testing.B, name func(i int) string) {
		b.Helper()
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		measure(b, func(c *quorum.Coordinator) {
			for i := range many {
				all.Go(func() {
					if _, err := c.Acquire(ctx, name(i)); err == nil {
						b.Error("had it")
					}
				})
			}
			for quorum.WaitersOf(c) < many || quorum.ListeningOf(c) < quorum.LinesOf(c) {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second) // whatever each of them began with is done
		})
		cancel()
		all.Wait()
	}

	b.Run("lease", func(b *testing.B) {
		measure(b, func(c *quorum.Coordinator) { hold(b, c, "held ") })
	})
	b.Run("waiter", func(b *testing.B) {
		acquire(b, open(b), "hot")
		waiters(b, func(int) string { return "hot" })
	})
	b.Run("name", func(b *testing.B) {
		hold(b, open(b), "name ")
		waiters(b, func(i int) string { return fmt.Sprint("name ", i) })
	})
}
