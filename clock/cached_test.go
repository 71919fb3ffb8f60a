package clock

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A Cached that could pass for a Clock would sooner or later be asked whether a lease has ended.
func TestCachedIsNoClock(t *testing.T) {
	cached := reflect.TypeFor[*Cached]()
	if cached.Implements(reflect.TypeFor[Clock]()) {
		t.Error("*Cached implements Clock")
	}
	if _, ok := cached.MethodByName("Now"); ok {
		t.Error("*Cached has a method Now: its readings are stale")
	}
}

func TestCachedIsAsStaleAsItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPortable()
		const every = 10 * time.Millisecond
		c := NewCached(p, every)
		defer c.Close()
		for range 100 {
			time.Sleep(7 * time.Millisecond)
			synctest.Wait()
			if age := p.Now().Sub(c.Start()); age < 0 || age >= every {
				t.Fatalf("Start is %v old, want less than %v and not from the future", age, every)
			}
		}
	})
}

func TestStarvedCachedErrsTowardsAnEarlyEnd(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	c := NewCached(p, time.Hour) // the updater does not get to run
	defer c.Close()
	m.run(time.Minute)
	m.suspend(10 * time.Minute)
	if end, truth := Validity(c.Start(), time.Second, 0), Validity(p.Now(), time.Second, 0); end.After(truth) {
		t.Errorf("a lease from Start ends at %v, after the true %v", end, truth)
	}
}

func TestCachedNeverRunsAheadNorBack(t *testing.T) {
	everyClock(t, func(t *testing.T, src Clock) {
		c := NewCached(src, 50*time.Microsecond)
		defer c.Close()
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				var last Instant
				for range 5000 {
					start := c.Start()
					if start.IsZero() || start.Before(last) || start.After(src.Now()) {
						t.Errorf("Start = %v, after %v, now %v", start, last, src.Now())
						return
					}
					last = start
				}
			})
		}
		readers.Wait()
	})
}

// slowClock needs a second for each reading.
type slowClock struct {
	*Portable
	reading bool // no lock: the race detector would report it if Close did not wait
}

func (c *slowClock) Now() Instant {
	c.reading = true
	time.Sleep(time.Second)
	c.reading = false
	return c.Portable.Now()
}

func TestCloseWaitsForTheUpdaterToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowClock{Portable: NewPortable()}
		c := NewCached(src, time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		c.Close()
		if src.reading {
			t.Error("closed while the updater was reading")
		}
	})
}

func TestClosedCachedStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCached(NewPortable(), time.Millisecond)
		c.Close()
		c.Close()
		start := c.Start()
		time.Sleep(time.Second)
		if got := c.Start(); got != start {
			t.Errorf("Start moved from %v to %v after Close", start, got)
		}
	})
}

func TestCachedRefusesAnIntervalItCannotKeep(t *testing.T) {
	for _, every := range []time.Duration{0, -time.Second} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewCached(%v) did not panic", every)
				}
			}()
			NewCached(NewPortable(), every).Close()
		}()
	}
}
