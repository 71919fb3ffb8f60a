package quorum_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// What it costs to hold and to wait, in the memory of the process.

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
		heap, stacks, goroutines := quorumtest.Footprint()
		prepare(c)
		heap2, stacks2, goroutines2 := quorumtest.Footprint()
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
