package renew

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// routines counts the goroutines of this package's run.
func routines() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "renew.(*Watchdog).run(")
}

// counting counts the alarms that were made and not stopped.
type counting struct {
	clock.Clock
	alarms *atomic.Int32
}

type countedAlarm struct {
	clock.Alarm
	alarms *atomic.Int32
}

func (c counting) NewAlarm() clock.Alarm {
	c.alarms.Add(1)
	return countedAlarm{c.Clock.NewAlarm(), c.alarms}
}

func (a countedAlarm) Stop() { a.alarms.Add(-1); a.Alarm.Stop() }

func TestOneGoroutineServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := counting{clock.NewPortable(), new(atomic.Int32)}
		d := NewWatchdog(clk)
		before := runtime.NumGoroutine()
		synctest.Wait()
		if routines() != 0 || clk.alarms.Load() != 0 {
			t.Error("something runs before the first lease")
		}
		const n = 5000
		var renewed, expired atomic.Int32
		for i := range n {
			l := newLease(clk)
			l.renew, l.expire = func() { renewed.Add(1) }, func() { expired.Add(1) }
			d.Watch(l, l.in(time.Duration(1+i%977)*time.Millisecond), l.in(time.Second+time.Duration(i%613)*time.Millisecond))
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; routines() != 1 || more > 2 || clk.alarms.Load() != 1 {
			t.Errorf("%d leases: %d goroutines, %d more than before, and %d alarms", n, routines(), more, clk.alarms.Load())
		}
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if renewed.Load() != n || expired.Load() != 0 {
			t.Errorf("%d renewed and %d expired, want all and none", renewed.Load(), expired.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if expired.Load() != n {
			t.Errorf("%d expired, want all", expired.Load())
		}
		d.Close()
		if clk.alarms.Load() != 0 || routines() != 0 {
			t.Error("something is left after Close")
		}
	})
}

// On the real clock, from many goroutines at once: nothing is called after Close, and every lease that was left alone
// expires.
func TestHammer(t *testing.T) {
	clk := clock.System()
	d := NewWatchdog(clk)
	var expired, closed atomic.Int64
	var group sync.WaitGroup
	const callers, each = 16, 200
	for c := range callers {
		group.Go(func() {
			for i := range each {
				l := &hammered{expired: &expired, closed: &closed}
				now := clk.Now()
				l.watch.Store(d.Watch(l, now.Add(time.Duration(i%5)*time.Millisecond), now.Add(time.Duration(5+i%7)*time.Millisecond)))
				if (c+i)%3 == 0 {
					l.watch.Load().Set(now, now.Add(time.Duration(i%11)*time.Millisecond))
				}
				if i%4 == 0 {
					l.watch.Load().Stop()
					l.watch.Load().Set(clock.Instant{}, clk.Now())
				}
			}
		})
	}
	group.Wait()
	for deadline := time.Now().Add(10 * time.Second); expired.Load() < callers*each; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d expired", expired.Load(), callers*each)
		}
		runtime.Gosched()
	}
	for range 100 {
		l := &hammered{expired: &expired, closed: &closed}
		l.watch.Store(d.Watch(l, clk.Now(), clk.Now().Add(time.Millisecond)))
	}
	d.Close()
	closed.Store(1)
}

type hammered struct {
	watch           atomic.Pointer[Watch]
	expired, closed *atomic.Int64
	once            sync.Once
}

func (h *hammered) Renew() { h.check() }

func (h *hammered) Expire() {
	h.check()
	h.once.Do(func() { h.expired.Add(1) })
	if w := h.watch.Load(); w != nil {
		w.Stop()
	}
}

func (h *hammered) check() {
	if h.closed.Load() != 0 {
		panic("called after Close")
	}
}
