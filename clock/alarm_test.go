package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAlarmFiresAtItsInstantAndNotBefore(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm()
		defer a.Stop()
		for range 3 { // an alarm can be used again
			at := c.Now().Add(5 * time.Millisecond)
			a.Set(at)
			<-a.C()
			if now := c.Now(); now.Before(at) {
				t.Fatalf("fired at %v, %v early", now, at.Sub(now))
			}
		}
	})
}

func TestAlarmFiresAtOnceForThePast(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm()
		defer a.Stop()
		for _, at := range []Instant{{}, {floor}, c.Now().Add(-time.Hour), c.Now()} {
			a.Set(at)
			select {
			case <-a.C():
			default:
				t.Errorf("set to %v, which is past: not fired when Set returned", at)
			}
		}
	})
}

func TestAlarmFiresOncePerSetting(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm()
		defer a.Stop()
		a.Set(c.Now().Add(time.Millisecond))
		<-a.C()
		// A second alarm measures off a time in which the first could fire again.
		other := c.NewAlarm()
		defer other.Stop()
		other.Set(c.Now().Add(10 * time.Millisecond))
		select {
		case <-a.C():
			t.Error("fired twice")
		case <-other.C():
		}
	})
}

func TestAlarmSetAnewForgetsTheEarlierSetting(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm()
		defer a.Stop()

		a.Set(c.Now()) // fired, not received
		a.Set(c.Now().Add(time.Hour))
		select {
		case <-a.C():
			t.Error("received the firing of a setting that was replaced")
		default:
		}

		at := c.Now().Add(5 * time.Millisecond)
		a.Set(at) // sooner than the hour
		<-a.C()
		if now := c.Now(); now.Before(at) {
			t.Errorf("fired at %v, %v early", now, at.Sub(now))
		}
	})
}

// Wakers may call too soon, once too often, or for a setting that is no more.
func TestStrayWakeUpIsHarmless(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm().(*alarm)
		defer a.Stop()
		silent := func(when string) {
			t.Helper()
			a.look()
			select {
			case <-a.C():
				t.Errorf("%s: a wake-up fired the alarm", when)
			default:
			}
		}
		silent("never set")
		a.Set(c.Now().Add(time.Hour))
		silent("not due")
		a.Set(c.Now())
		<-a.C()
		silent("fired already")
	})
}

// The races that replacing a setting has are all about one that comes due just then.
func TestAlarmSetAnewWhileFiringIsNeverEarly(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm()
		defer a.Stop()
		for i := range 300 {
			a.Set(c.Now().Add(time.Duration(i%50) * time.Microsecond))
			for range i % 7 {
				c.Now() // spend a little time, so that the first setting is due or nearly so
			}
			at := c.Now().Add(200 * time.Microsecond)
			a.Set(at)
			<-a.C()
			if now := c.Now(); now.Before(at) {
				t.Fatalf("fired at %v, %v early", now, at.Sub(now))
			}
		}
	})
}

func TestStoppedAlarmIsSilent(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		a := c.NewAlarm()
		a.Set(c.Now()) // fired, not received
		a.Stop()
		a.Stop()
		a.Set(c.Now())
		select {
		case <-a.C():
			t.Error("a stopped alarm fired")
		default:
		}
	})
}

func TestAlarmNeverSetCanBeStopped(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) { c.NewAlarm().Stop() })
}

func TestAlarmSetAndStoppedFromManyGoroutines(t *testing.T) {
	everyClock(t, func(t *testing.T, c Clock) {
		for range 50 {
			a := c.NewAlarm()
			var users sync.WaitGroup
			for g := range 4 {
				users.Go(func() {
					for i := range 50 {
						a.Set(c.Now().Add(time.Duration(i*g) * time.Microsecond))
						select {
						case <-a.C():
						default:
						}
					}
					a.Stop()
				})
			}
			users.Wait()
		}
	})
}

func TestAlarmIsExactInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPortable()
		a := p.NewAlarm()
		defer a.Stop()
		for _, d := range []time.Duration{1, time.Millisecond, nap, nap + 1, 10 * time.Minute} {
			at := p.Now().Add(d)
			a.Set(at)
			<-a.C()
			if now := p.Now(); now != at {
				t.Errorf("set for in %v: fired %v off", d, now.Sub(at))
			}
		}
	})
}

func TestAlarmOfThePortableNoticesASuspendWithinANap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended atomic.Int64
		boot := time.Now()
		p := newPortable(func() (time.Time, time.Duration) {
			now := time.Now()
			return now.Round(0).Add(time.Duration(suspended.Load())), now.Sub(boot)
		})
		a := p.NewAlarm()
		defer a.Stop()
		a.Set(p.Now().Add(time.Hour))
		time.Sleep(10*time.Minute + nap/3)

		suspended.Store(int64(2 * time.Hour))
		resumed := time.Now()
		<-a.C()
		if late := time.Since(resumed); late > nap {
			t.Errorf("fired %v after the resume, want %v at most", late, nap)
		}
	})
}

// An alarm for a moment that cannot come must not keep a bubble, or a laptop, busy.
func TestAlarmForTheEndOfTimeSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPortable()
		a := newAlarm(p)
		defer a.Stop()
		a.Set(p.Now().Add(longest))
		if a.waker.(*naps).timer != nil {
			t.Error("naps for an instant that never comes")
		}
	})
}

// goleak does not see an AfterFunc that is armed, so the timer itself is asked.
func TestStopDisarmsTheNapAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPortable()
		a := newAlarm(p)
		a.Set(p.Now().Add(time.Hour))
		time.Sleep(3*nap + nap/2)
		before := p.Now()
		a.Stop()
		if took := p.Now().Sub(before); took != 0 {
			t.Errorf("Stop took %v: it waited for the nap to end", took)
		}
		if a.waker.(*naps).timer.Stop() {
			t.Error("the timer was still armed after Stop")
		}
	})
}

func TestStopWaitsForTheNapsCallToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looking bool // no lock: the race detector would report it if close did not wait
		n := &naps{look: func() {
			looking = true
			time.Sleep(time.Second)
			looking = false
		}}
		n.ask(Instant{}, time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		n.close()
		if looking {
			t.Error("closed while a call was running")
		}
	})
}
