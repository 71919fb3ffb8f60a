package quorumtest

import "runtime"

// Footprint is what the process has in use.
func Footprint() (heap, stacks int64, goroutines int) {
	var m runtime.MemStats
	for range 3 { // what one collection finalises the next one frees
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()
}
