package clock

import (
	"sync"
	"time"
)

// A Clock measures time as the Redis nodes experience it: it goes on while this machine is
// suspended, and no one can set it. It is safe for concurrent use.
type Clock interface {
	// Now returns the present. It is never stale and never goes back: a call that begins after
	// another one returned answers no earlier Instant.
	Now() Instant

	// Wall returns the wall clock, without a monotonic reading. It can be set, and goes back when
	// it is: it is for proposing fencing tokens and for logs, never for measuring.
	Wall() time.Time

	// Uncertainty returns by how much this clock may report an interval shorter than it was, rate
	// drift aside. It belongs into [Drift]. It is 0 for [Boot].
	Uncertainty() time.Duration

	// NewAlarm returns an alarm on this clock, disarmed. It must be stopped.
	NewAlarm() Alarm
}

// An Alarm fires when its clock reaches an instant, promptly after a suspend too. (A Go timer stands
// still during one, and fires that much too late.)
type Alarm interface {
	// C returns the channel, always the same one, that receives one value for each setting, at or
	// after the instant set. It has room for that value, so a firing is not lost if nobody
	// listens.
	C() <-chan struct{}

	// Set arms the alarm, in place of an earlier setting: a value received after Set returned
	// never stems from that one. An instant that is past, or zero, fires at once.
	Set(at Instant)

	// Stop disarms the alarm for good and returns when its goroutine, if it has one, has ended.
	// Stopping again is allowed; Set does nothing any more.
	Stop()
}

// System returns the clock of this process: a [Boot] where the system has one, else a [Portable]. It
// is the same at every call, so that instants of different parts of a program compare.
func System() Clock { return system() }

var system = sync.OnceValue(func() Clock {
	if b, err := NewBoot(); err == nil {
		return b
	}
	return NewPortable()
})
