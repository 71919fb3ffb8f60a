package quorum_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// benchmarkPairs measures acquire + release of distinct names on five real servers.
func benchmarkPairs(b *testing.B, callers int) {
	redisserver.Require(b)
	c, err := quorum.Open(quorum.Config{}, redisserver.URLs(redisserver.StartN(b, 5))...)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	pair := func(name string) {
		l, err := c.Acquire(ctx, name)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
	pair("warm")
	b.ReportAllocs()
	b.ResetTimer()
	if callers == 1 {
		for b.Loop() {
			pair("alone")
		}
		return
	}
	var names atomic.Int64
	b.SetParallelism(callers)
	b.RunParallel(func(pb *testing.PB) {
		name := "caller-" + strconv.FormatInt(names.Add(1), 10)
		for pb.Next() {
			pair(name)
		}
	})
}

func BenchmarkPairsOneCaller(b *testing.B)   { benchmarkPairs(b, 1) }
func BenchmarkPairsManyCallers(b *testing.B) { benchmarkPairs(b, 64) }
