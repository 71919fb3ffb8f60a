package measure

import (
	"runtime"
	"time"
)

// A Cost is what this process has used since Start: embedded nodes included, other processes not.
type Cost struct {
	start         time.Time
	cpu           time.Duration
	allocs, bytes uint64
}

// Start begins to count.
func Start() Cost {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Cost{time.Now(), CPU(), m.Mallocs, m.TotalAlloc}
}

// Stop fills in what it took since, for the pairs that the result has by now.
func (c Cost) Stop(r *Result) {
	elapsed, cpu := time.Since(c.start), CPU()-c.cpu
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Seconds = elapsed.Seconds()
	if r.Pairs == 0 {
		return
	}
	pairs := float64(r.Pairs)
	r.PerSecond = pairs / elapsed.Seconds()
	r.CPUMicros = float64(cpu.Nanoseconds()) / 1e3 / pairs
	r.Allocs = float64(m.Mallocs-c.allocs) / pairs
	r.Bytes = float64(m.TotalAlloc-c.bytes) / pairs
}

// InUse is the memory that is in use after a collection, stacks included.
func InUse() uint64 {
	runtime.GC()
	runtime.GC() // what the first one made unreachable by running finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
