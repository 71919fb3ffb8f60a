package simulation

import (
	"math"
	"sync"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// timeline is how a clock runs: at a rate, from an anchor, both of which a fault may change.
type timeline struct {
	rate  float64
	at    time.Duration // true time of the anchor
	reads time.Duration // what the clock read then
	sound float64       // the rate before a fault changed it; 0 if none has
}

// reading is what the clock shows at a true time.
func (l *timeline) reading(now time.Duration) time.Duration {
	return l.reads + time.Duration(float64(now-l.at)*l.rate)
}

// jump sets the clock.
func (l *timeline) jump(now, by time.Duration) {
	l.reads, l.at = l.reading(now)+by, now
}

// turn changes the rate.
func (l *timeline) turn(now time.Duration, rate float64) {
	l.jump(now, 0)
	l.rate = rate
}

// spoil makes the clock run wrong, until mend.
func (l *timeline) spoil(now time.Duration, rate float64) {
	if l.sound == 0 {
		l.sound = l.rate
	}
	l.turn(now, rate)
}

// mend ends spoil. What the clock shows by then it goes on from.
func (l *timeline) mend(now time.Duration) {
	if l.sound != 0 {
		l.turn(now, l.sound)
		l.sound = 0
	}
}

// until is how much true time passes before the clock has gone on by d.
func (l *timeline) until(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(d)/l.rate)) + 1
}

// Clock is a client's clock: it runs at a rate of its own, and shows a wall time of its own. It goes on while the client is
// paused, but no alarm wakes that up before.
type Clock struct {
	start time.Time
	base  clock.Instant

	mu     sync.Mutex
	line   timeline
	wall   time.Duration // ahead of the truth
	paused time.Duration // until when no alarm fires, in true time
	alarms map[*alarm]struct{}
}

func newClock(rate float64, wall time.Duration) *Clock {
	return &Clock{
		start: time.Now(), base: clock.NewPortable().Now(),
		line: timeline{rate: rate}, wall: wall, alarms: make(map[*alarm]struct{}),
	}
}

// Now returns the present on this clock.
func (c *Clock) Now() clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() clock.Instant { return c.base.Add(c.line.reading(time.Since(c.start))) }

// Wall returns the wall time on this clock.
func (c *Clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Add(c.line.reading(time.Since(c.start)) + c.wall).Round(0)
}

// Uncertainty returns 0: this clock sees everything, as clock.Boot does.
func (c *Clock) Uncertainty() time.Duration { return 0 }

// change lets f change the clock and looks at all alarms again.
func (c *Clock) change(f func(now time.Duration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(time.Since(c.start))
	for a := range c.alarms {
		a.check()
	}
}

// pause holds alarms back until a true time, or no longer if that is over.
func (c *Clock) pause(until time.Duration) {
	c.change(func(time.Duration) { c.paused = until })
}

// Ago is how much true time has passed since the clock showed this, if nobody has touched it since; 0 if it has not yet.
func (c *Clock) Ago(at clock.Instant) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Duration(float64(c.now().Sub(at))/c.line.rate))
}

// NewAlarm returns an alarm on this clock.
func (c *Clock) NewAlarm() clock.Alarm {
	return &alarm{clock: c, c: make(chan struct{}, 1)}
}

// alarm is an alarm on a Clock, and guarded by its mutex. It needs no goroutine while it waits.
type alarm struct {
	clock *Clock
	c     chan struct{}

	at      clock.Instant
	armed   bool
	stopped bool
	timer   *time.Timer
}

func (a *alarm) C() <-chan struct{} { return a.c }

func (a *alarm) Set(at clock.Instant) {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	if a.stopped {
		return
	}
	a.drain()
	a.at, a.armed = at, true
	a.clock.alarms[a] = struct{}{}
	a.check()
}

// check fires the alarm if its instant has come and its client is awake, else sets the timer. The clock's mutex is held.
func (a *alarm) check() {
	if !a.armed {
		return
	}
	left := a.at.Sub(a.clock.now())
	if left > 1000*time.Hour {
		return // nobody waits that long
	}
	wait := a.clock.paused - time.Since(a.clock.start)
	if left > 0 {
		wait = max(wait, a.clock.line.until(left))
	}
	if wait > 0 {
		if a.timer == nil {
			a.timer = time.AfterFunc(wait, a.look)
		} else {
			a.timer.Reset(wait)
		}
		return
	}
	a.armed = false
	delete(a.clock.alarms, a)
	a.c <- struct{}{} // there is room: Set drained it
}

func (a *alarm) look() {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.check()
}

func (a *alarm) drain() {
	select {
	case <-a.c:
	default:
	}
}

func (a *alarm) Stop() {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.stopped, a.armed = true, false
	delete(a.clock.alarms, a)
	if a.timer != nil {
		a.timer.Stop()
	}
	a.drain()
}

var _ clock.Clock = (*Clock)(nil)
