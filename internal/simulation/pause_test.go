package simulation

import (
	"testing"
	"testing/synctest"
	"time"
)

// rung is when an alarm fired, since the start.
func rung(c *Clock, in time.Duration) <-chan time.Duration {
	start, at := time.Now(), make(chan time.Duration, 1)
	a := c.NewAlarm()
	a.Set(c.Now().Add(in))
	go func() {
		<-a.C()
		a.Stop()
		at <- time.Since(start)
	}()
	return at
}

func TestPausedClientHearsOfNothingWhileItsClockGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(1, 1, 2, Fair(time.Millisecond))
		paused, awake := w.Client(0), w.Client(1)
		first, before := paused.Clock().Now(), awake.Clock().Now()
		early, other, late := rung(paused.Clock(), 100*time.Millisecond), rung(awake.Clock(), 100*time.Millisecond), rung(paused.Clock(), 2*time.Second)
		paused.Pause(time.Second)
		paused.Sleep(10 * time.Millisecond)
		if slept := w.Now(); slept < time.Second || slept > time.Second+time.Microsecond {
			t.Errorf("a sleeper woke up after %v, want 1s", slept)
		}
		synctest.Wait()
		for _, c := range []struct {
			what      string
			got, want time.Duration
		}{
			{"an alarm in the pause fired after", <-early, time.Second + scramble},
			{"that of another client fired after", <-other, 100*time.Millisecond + 1},
			{"an alarm after the pause fired after", <-late, 2*time.Second + 1},
			{"the clock went on by", paused.Clock().Now().Sub(first), 2*time.Second + 1},
			{"what it showed first is ago", paused.Clock().Ago(first), 2*time.Second + 1},
			{"what it will show is ago", paused.Clock().Ago(first.Add(time.Hour)), 0},
			{"the other's first is ago", awake.Clock().Ago(before), 2*time.Second + 1},
		} {
			if c.got != c.want {
				t.Errorf("%s %v, want %v", c.what, c.got, c.want)
			}
		}
	})
}

// An end of everything that is wrong ends a pause, too, and whoever was held back is not forgotten.
func TestHealEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(1, 1, 1, Fair(time.Millisecond))
		at := rung(w.Client(0).Clock(), 100*time.Millisecond)
		w.Client(0).Pause(time.Hour)
		time.Sleep(time.Second)
		w.Heal(time.Millisecond)
		if got := <-at; got != time.Second {
			t.Errorf("the alarm fired after %v, want 1s", got)
		}
	})
}
