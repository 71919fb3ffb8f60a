package clock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kernel reads a clock without any code of ours.
func kernel(t *testing.T, id int32) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

func newBoot(t *testing.T) *Boot {
	t.Helper()
	b, err := NewBoot()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBootReadsBoottime(t *testing.T) {
	b := newBoot(t)
	for range 1000 {
		before := kernel(t, unix.CLOCK_BOOTTIME)
		now := time.Duration(b.Now().ns)
		after := kernel(t, unix.CLOCK_BOOTTIME)
		if now < before || now > after {
			t.Fatalf("Now = %v, CLOCK_BOOTTIME %v before and %v after", now, before, after)
		}
	}
}

// On a machine that was never suspended CLOCK_BOOTTIME and CLOCK_MONOTONIC are the same, and confusing them
// goes unnoticed. A time namespace pulls them apart as a suspend would.
func TestBootIsNotMonotonicTime(t *testing.T) {
	const apart = 1_000_000 * time.Second
	if os.Getenv("REDQUORUM_CLOCK_NAMESPACE") == "" {
		cmd := exec.Command("unshare", "--time", "--boottime", "1000000",
			os.Args[0], "-test.run=^TestBootIsNotMonotonicTime$", "-test.v", "-test.timeout=30s")
		cmd.Env = append(os.Environ(), "REDQUORUM_CLOCK_NAMESPACE=yes")
		out, err := cmd.CombinedOutput()
		switch {
		case err == nil && strings.Contains(string(out), "--- PASS"):
		case strings.Contains(string(out), "=== RUN"):
			t.Errorf("in the namespace:\n%s", out)
		default:
			t.Skipf("no time namespace to be had here: %v\n%s", err, out)
		}
		return
	}

	b := newBoot(t)
	if gap := time.Duration(b.Now().ns) - kernel(t, unix.CLOCK_MONOTONIC); gap < apart/2 {
		t.Errorf("Now is only %v ahead of CLOCK_MONOTONIC, CLOCK_BOOTTIME is %v", gap, apart)
	}
	// An alarm on another clock than its reading would fire eleven days late.
	fd := newTimerfdAlarm(t, b)
	defer fd.Stop()
	fd.Set(b.Now().Add(5 * time.Millisecond))
	<-fd.C()
}

// newTimerfdAlarm returns an alarm that surely rests on a timerfd.
func newTimerfdAlarm(t *testing.T, b *Boot) *alarm {
	t.Helper()
	a := b.NewAlarm().(*alarm)
	if _, ok := a.waker.(*timerfd); !ok {
		a.Stop()
		t.Fatalf("the alarm is woken by %T, want a timerfd", a.waker)
	}
	return a
}

func TestBootAlarmWaitsOnATimerfdAlone(t *testing.T) {
	b := newBoot(t)
	a := newTimerfdAlarm(t, b)
	defer a.Stop()
	a.Set(b.Now().Add(5 * time.Millisecond))
	<-a.C()
	a.mu.Lock() // where the naps are asked for
	defer a.mu.Unlock()
	if fd := a.waker.(*timerfd); fd.broken.Load() || fd.naps.timer != nil {
		t.Error("the alarm fell back to naps, on a timerfd that works")
	}
}

func TestStopClosesTheTimerfd(t *testing.T) {
	b := newBoot(t)
	before := countTimerfds(t)
	var alarms []Alarm
	for range 10 {
		a := newTimerfdAlarm(t, b)
		a.Set(b.Now().Add(time.Hour))
		alarms = append(alarms, a)
	}
	if got := countTimerfds(t) - before; got != 10 {
		t.Errorf("10 alarms have %d timerfds", got)
	}
	for _, a := range alarms {
		a.Stop()
	}
	if got := countTimerfds(t) - before; got != 0 {
		t.Errorf("%d timerfds still open after Stop", got)
	}
}

func countTimerfds(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "timerfd") {
			n++
		}
	}
	return n
}

// The end of a lease hangs on an alarm, so it has to fire whatever becomes of its file: here it is none that
// could be a timer, and fails at the first Set (a pipe) or already at the first Read (the null device).
func TestBootAlarmFiresWithoutItsTimerfd(t *testing.T) {
	b := newBoot(t)
	for name, open := range map[string]func() int{
		"set fails":  func() int { return openPipe(t) },
		"read fails": func() int { return openNull(t) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlarm(b)
			a.waker = startTimerfd(open(), a.look)
			defer a.Stop()
			at := b.Now().Add(5 * time.Millisecond)
			a.Set(at)
			<-a.C()
			if now := b.Now(); now.Before(at) {
				t.Errorf("fired at %v, %v early", now, at.Sub(now))
			}
		})
	}
}

func openPipe(t *testing.T) int {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ends[1]) })
	return ends[0]
}

func openNull(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestBootAlarmThatIsSetSurvivesItsTimerfd(t *testing.T) {
	b := newBoot(t)
	a := newTimerfdAlarm(t, b)
	defer a.Stop()
	a.Set(b.Now().Add(20 * time.Millisecond))
	if err := a.waker.(*timerfd).file.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	<-a.C()
}

func TestStopWaitsForTheReaderToEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var looked bool // no lock: the race detector would report it if close did not wait
	fd, err := newTimerfd(func() {
		close(entered)
		<-leave
		looked = true
	})
	if err != nil {
		t.Fatal(err)
	}
	fd.ask(Instant{floor}, 0)
	<-entered
	close(leave)
	fd.close()
	if !looked {
		t.Error("closed while a call was running")
	}
}

func TestBootAlarmNeedsNoFreeFile(t *testing.T) {
	b := newBoot(t)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Skipf("cannot lower the limit of open files: %v", err)
	}
	a := b.NewAlarm()
	_, probe := newTimerfd(func() {})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	if !errors.Is(probe, unix.EMFILE) {
		t.Fatalf("with no file to be had newTimerfd returned %v", probe)
	}
	a.Set(b.Now().Add(5 * time.Millisecond))
	<-a.C()
}
