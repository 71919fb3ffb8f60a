package clock

import (
	"sync"
	"time"
)

// nap is the longest that an alarm relies on a Go timer. Go's timers stand still while the machine is
// suspended, so a nap that began before a suspend ends at most this long after the resume; only then
// does the alarm see that its instant has passed.
const nap = time.Second

// alarm is the Alarm of every clock. What differs is the waker: who calls look, and how soon after the
// instant. The waker only prompts; whether the instant has come is asked of the clock alone, so a
// wake-up that is early or left over from an earlier setting does no harm.
type alarm struct {
	clock Clock
	waker waker
	c     chan struct{}

	mu      sync.Mutex
	at      Instant
	armed   bool
	stopped bool
}

// A waker calls the alarm's look soon after it was asked to.
type waker interface {
	// ask requests one call of look at the given instant, which is left away from now. A later
	// ask replaces it. Calling sooner is allowed: look will ask again.
	ask(at Instant, left time.Duration)

	// close returns when no call of look is running or will be made. No ask comes after it.
	close()
}

// newAlarm returns an alarm that is woken by naps.
func newAlarm(c Clock) *alarm {
	a := &alarm{clock: c, c: make(chan struct{}, 1)}
	a.waker = &naps{look: a.look}
	return a
}

func (a *alarm) C() <-chan struct{} { return a.c }

func (a *alarm) Set(at Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	a.drain()
	a.at, a.armed = at, true
	a.check()
}

func (a *alarm) Stop() {
	a.mu.Lock()
	a.stopped, a.armed = true, false
	a.drain()
	a.mu.Unlock()
	a.waker.close() // not under mu, for which the call of look that it waits for may be waiting
}

// look is what the waker calls.
func (a *alarm) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.armed {
		a.check()
	}
}

// check fires the alarm if its instant has come, and asks to be woken if not. The caller holds mu.
func (a *alarm) check() {
	if left := a.at.Sub(a.clock.Now()); left > 0 {
		if a.at.ns != far { // which no clock reaches: waking up for it would be in vain
			a.waker.ask(a.at, left)
		}
		return
	}
	a.armed = false
	a.c <- struct{}{} // there is room: Set drained c, and disarming makes this the only send since
}

// drain takes back a firing that nobody received. The caller holds mu, so none can follow it.
func (a *alarm) drain() {
	select {
	case <-a.c:
	default:
	}
}

// naps is the waker that works everywhere, in the fake time of testing/synctest too. It needs no
// goroutine while it waits.
type naps struct {
	look  func()
	timer *time.Timer
	calls sync.WaitGroup // calls of look: those running, and the one that the timer is armed for
}

func (n *naps) ask(_ Instant, left time.Duration) {
	d := min(left, nap)
	if n.timer == nil {
		n.calls.Add(1)
		n.timer = time.AfterFunc(d, func() {
			defer n.calls.Done()
			n.look()
		})
	} else if !n.timer.Reset(d) {
		n.calls.Add(1) // the call counted before has begun: it sees to its own Done
	}
}

func (n *naps) close() {
	if n.timer != nil && n.timer.Stop() {
		n.calls.Done() // of the call that was called off
	}
	n.calls.Wait()
}
