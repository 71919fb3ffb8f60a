package clock

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// everyClock runs a test on each clock that this system has.
func everyClock(t *testing.T, test func(*testing.T, Clock)) {
	t.Run("Portable", func(t *testing.T) { test(t, NewPortable()) })
	if b, err := NewBoot(); err == nil {
		t.Run("Boot", func(t *testing.T) { test(t, b) })
	}
}

func TestSystemIsOneClock(t *testing.T) {
	if System() != System() {
		t.Error("two calls of System return different clocks: their instants may not compare")
	}
	if _, isBoot := System().(*Boot); !isBoot && runtime.GOOS == "linux" {
		t.Errorf("System is a %T on Linux, want *Boot", System())
	}
}

func TestNowIsSet(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		if now := c.Now(); now.IsZero() || now.Before(Instant{floor}) {
			t.Errorf("Now = %v", now)
		}
	})
}

func TestNowMovesOn(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		for start := c.Now(); !c.Now().After(start); { // a clock that stands still hangs here
		}
	})
}

// Each reading is compared with one that another goroutine has finished before, handed over under the lock.
func TestNowNeverGoesBackAcrossGoroutines(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		var (
			mu   sync.Mutex
			last Instant
		)
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for range 5000 {
					mu.Lock()
					before := last
					mu.Unlock()
					now := c.Now()
					if now.Before(before) {
						t.Errorf("read %v after another goroutine had read %v", now, before)
						return
					}
					mu.Lock()
					if now.After(last) {
						last = now
					}
					mu.Unlock()
				}
			})
		}
		readers.Wait()
	})
}

func TestWallIsTheWallClockAndCannotMeasure(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		before := time.Now().Round(0)
		wall := c.Wall()
		after := time.Now().Round(0)
		if wall.Before(before) || wall.After(after) {
			t.Errorf("Wall = %v, not between %v and %v", wall, before, after)
		}
		if wall != wall.Round(0) {
			t.Error("Wall carries a monotonic reading")
		}
	})
}
