package clock

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// timerfd is the waker that the kernel's own clock drives: it wakes at the instant however much of
// the wait was spent suspended.
type timerfd struct {
	look   func()
	file   *os.File // waits in the runtime's poller, so a waiting alarm occupies no thread
	fd     int      // the file's; File.Fd would make it blocking
	done   chan struct{}
	broken atomic.Bool
	naps   naps // for when the kernel fails us: an alarm that keeps silent would hide the end of a lease
}

func newTimerfd(look func()) (*timerfd, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return startTimerfd(fd, look), nil
}

func startTimerfd(fd int, look func()) *timerfd {
	t := &timerfd{
		look: look,
		file: os.NewFile(uintptr(fd), "timerfd"),
		fd:   fd,
		done: make(chan struct{}),
		naps: naps{look: look},
	}
	go t.read()
	return t
}

// read calls look at each expiration, until the file is closed.
func (t *timerfd) read() {
	defer close(t.done)
	var expirations [8]byte
	for {
		_, err := t.file.Read(expirations[:])
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			// Not known to happen. From here on naps do the work; look, because the alarm
			// may be armed already and has to ask again.
			t.broken.Store(true)
			t.look()
			return
		}
		t.look()
	}
}

// ask needs no guard against close: the alarm asks under its lock and not after it was stopped, so fd is
// still this file.
func (t *timerfd) ask(at Instant, left time.Duration) {
	if t.broken.Load() {
		t.naps.ask(at, left)
		return
	}
	// The time is absolute: a relative one would be off by however long this thread is kept from
	// running before the call. Zero would disarm the timer, but a set instant is at least floor.
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(at.ns)}
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &when, nil); err != nil {
		t.naps.ask(at, left)
	}
}

func (t *timerfd) close() {
	t.file.Close() // wakes the reader; a second close is refused, which is fine
	<-t.done
	t.naps.close()
}
