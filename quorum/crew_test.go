package quorum

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Tasks that come one after another are run by one goroutine, and a hundred at once by a hundred, who stay.
func TestCrewKeepsItsGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // see inBubble
	synctest.Test(t, func(t *testing.T) {
		var cr crew
		resting := func() int {
			cr.mu.Lock()
			defer cr.mu.Unlock()
			return len(cr.idle)
		}
		ran := 0
		for range 100 {
			cr.do(func() { ran++ })
			synctest.Wait()
		}
		if n := resting(); n != 1 || ran != 100 {
			t.Errorf("%d goroutines for one task at a time, of which %d ran", n, ran)
		}
		for range 3 {
			for range 100 {
				cr.do(func() { time.Sleep(time.Second) })
			}
			start := time.Now()
			time.Sleep(2 * time.Second)
			if n := resting(); n != 100 {
				t.Errorf("%d goroutines %v after a hundred tasks", n, time.Since(start))
			}
		}
		cr.wait() // the bubble sees whether any is left
	})
}

// A task never waits for another one: each may be what the other waits for. And of a great many no more stay than may.
func TestCrewRunsEveryTaskAtOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		const tasks = 4 * mostIdle
		var cr crew
		none := runtime.NumGoroutine()
		for range 2 {
			var all sync.WaitGroup
			all.Add(tasks)
			for range tasks {
				cr.do(func() {
					all.Done()
					all.Wait()
				})
			}
			all.Wait()
			synctest.Wait()
			if n := runtime.NumGoroutine() - none; n > mostIdle {
				t.Errorf("%d goroutines stay, want at most %d", n, mostIdle)
			}
		}
		cr.wait()
	})
}

// Whoever waits for the crew waits for tasks that tasks have begun, too.
func TestCrewIsWaitedForToTheLastTask(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		var cr crew
		var ran atomic.Int64
		cr.do(func() {
			time.Sleep(time.Second)
			cr.do(func() {
				time.Sleep(time.Second)
				ran.Add(1)
			})
		})
		cr.wait()
		if ran.Load() != 1 {
			t.Error("a task was left behind")
		}
	})
}

// Tasks come and go from many goroutines, for the race detector.
func TestCrewUnderLoad(t *testing.T) {
	var cr crew
	var ran atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 1000 {
				cr.do(func() { ran.Add(1) })
			}
		})
	}
	callers.Wait()
	cr.wait()
	if ran.Load() != 16_000 {
		t.Errorf("%d tasks of 16000 ran", ran.Load())
	}
}
