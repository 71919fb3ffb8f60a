package clock

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Boot is Linux' CLOCK_BOOTTIME: the kernel's monotonic clock, and the time spent suspended with it.
// It is the clock to use, because the nodes go on counting down a TTL while the client's lid is shut.
// Its origin is the boot of the machine. Its alarms wait on a timerfd of the same clock, so they fire
// as soon as the machine is back.
//
// It has no fake time: in testing/synctest use a [Portable].
type Boot struct{}

var _ Clock = (*Boot)(nil)

// NewBoot returns the boot clock, or an error where the kernel or a sandbox does not let us read it.
func NewBoot() (*Boot, error) {
	if _, err := boottime(); err != nil {
		return nil, fmt.Errorf("clock: reading CLOCK_BOOTTIME: %w", err)
	}
	return &Boot{}, nil
}

// Now implements [Clock].
func (b *Boot) Now() Instant {
	ns, err := boottime()
	if err != nil {
		// NewBoot read it, so a sandbox was put up since. Any reading made up here would let
		// some lease outlive its keys.
		panic(fmt.Sprintf("clock: CLOCK_BOOTTIME can no longer be read: %v", err))
	}
	return Instant{max(floor, ns)}
}

// Wall implements [Clock].
func (b *Boot) Wall() time.Time { return time.Now().Round(0) }

// Uncertainty implements [Clock]: there is none.
func (b *Boot) Uncertainty() time.Duration { return 0 }

// NewAlarm implements [Clock]. Where no timerfd is to be had (the limit of open files is a reason), the
// alarm is the same as that of a [Portable], which may notice a suspend a second late.
func (b *Boot) NewAlarm() Alarm {
	a := newAlarm(b)
	if fd, err := newTimerfd(a.look); err == nil {
		a.waker = fd
	}
	return a
}

func boottime() (ns int64, err error) {
	var ts unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return ts.Nano(), err
}
