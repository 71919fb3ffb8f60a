package renew

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lease notes its calls, each with the time since the beginning.
type lease struct {
	clk   clock.Clock
	start clock.Instant

	renew, expire func() // what else to do

	mu    sync.Mutex
	calls []string
}

func newLease(clk clock.Clock) *lease { return &lease{clk: clk, start: clk.Now()} }

func (l *lease) note(what string, then func()) {
	l.mu.Lock()
	l.calls = append(l.calls, fmt.Sprintf("%s %v", what, l.clk.Now().Sub(l.start)))
	l.mu.Unlock()
	if then != nil {
		then()
	}
}

func (l *lease) Renew()  { l.note("renew", l.renew) }
func (l *lease) Expire() { l.note("expire", l.expire) }

// in returns the instant d after the lease's beginning.
func (l *lease) in(d time.Duration) clock.Instant { return l.start.Add(d) }

func (l *lease) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.calls, want) {
		t.Errorf("called %q, want %q", l.calls, want)
	}
}

// inBubble runs a test with a watchdog in fake time.
func inBubble(t *testing.T, test func(t *testing.T, d *Watchdog)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := NewWatchdog(clock.NewPortable())
		defer d.Close()
		test(t, d)
	})
}

const never = time.Duration(0)

// at is the instant d after the lease's beginning, or the zero Instant.
func (l *lease) at(d time.Duration) clock.Instant {
	if d == never {
		return clock.Instant{}
	}
	return l.in(d)
}

func TestCallsComeOnTime(t *testing.T) {
	for _, tt := range []struct {
		title      string
		renew, end time.Duration
		want       []string
	}{
		{"renewal, then the end", 10 * time.Second, 30 * time.Second, []string{"renew 10s", "expire 30s"}},
		{"no renewal", never, 30 * time.Second, []string{"expire 30s"}},
		{"a renewal after the end", 31 * time.Second, 30 * time.Second, []string{"expire 30s"}},
		{"both at once", 30 * time.Second, 30 * time.Second, []string{"expire 30s"}},
		{"the end just after the renewal", 30*time.Second - time.Millisecond, 30 * time.Second, []string{"renew 29.999s", "expire 30s"}},
		{"an end in the past", 10 * time.Second, -time.Second, []string{"expire 0s"}},
		{"both in the past", -2 * time.Second, -time.Second, []string{"expire 0s"}},
		{"a renewal in the past", -time.Second, time.Second, []string{"renew 0s", "expire 1s"}},
	} {
		t.Run(tt.title, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *Watchdog) {
				l := newLease(d.clock)
				d.Watch(l, l.at(tt.renew), l.in(tt.end))
				time.Sleep(time.Hour)
				l.want(t, tt.want...)
			})
		})
	}
}

// An end never set is before everything: a lease nobody vouches for is over.
func TestLeaseWithoutAnEndIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		l := newLease(d.clock)
		d.Watch(l, l.in(time.Second), clock.Instant{})
		l.want(t, "expire 0s")
	})
}

// suspended is a clock whose alarms fire late, as after a suspend.
type suspended struct {
	clock.Clock
	ahead *atomic.Int64
}

func (s suspended) Now() clock.Instant { return s.Clock.Now().Add(time.Duration(s.ahead.Load())) }

func TestEndGoesFirstAfterASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := suspended{clock.NewPortable(), new(atomic.Int64)}
		d := NewWatchdog(clk)
		defer d.Close()
		over, good := newLease(clk), newLease(clk)
		d.Watch(over, over.in(10*time.Second), over.in(30*time.Second))
		d.Watch(good, good.in(10*time.Second), good.in(2*time.Hour))
		time.Sleep(5 * time.Second)
		clk.ahead.Store(int64(time.Hour))
		time.Sleep(5 * time.Second)
		over.want(t, "expire 1h0m10s")
		good.want(t, "renew 1h0m10s")
	})
}

func TestNoSecondRenewalBeforeTheNextSet(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		l := newLease(d.clock)
		w := d.Watch(l, l.in(time.Second), l.in(time.Minute))
		time.Sleep(30 * time.Second)
		l.want(t, "renew 1s")
		w.Set(l.in(40*time.Second), l.in(90*time.Second))
		time.Sleep(time.Minute)
		l.want(t, "renew 1s", "renew 40s", "expire 1m30s")
	})
}

// Leases that are due at about the same time are renewed together, and others when they are due.
func TestLeasesThatAreDueSoonGoAlong(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		due := []time.Duration{10 * time.Second, 10*time.Second + 99*time.Millisecond, 10*time.Second + 101*time.Millisecond, 11 * time.Second}
		want := []string{"renew 10s", "renew 10s", "renew 10.101s", "renew 11s"}
		leases := make([]*lease, len(due))
		for i := range due {
			leases[i] = newLease(d.clock)
			d.Watch(leases[i], leases[i].at(due[i]), leases[i].in(due[i]+20*time.Second))
		}
		time.Sleep(20 * time.Second)
		for i, l := range leases {
			l.want(t, want[i])
		}
	})
}

// However long the lease is, others that are due all the time leave the pause before a repetition what it is.
func TestRepetitionsOfALongLeaseKeepTheirPauses(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		l := newLease(d.clock)
		d.Watch(l, l.in(500*time.Millisecond), l.in(time.Hour))
		for i := range 400 {
			other := newLease(d.clock)
			d.Watch(other, other.in(time.Duration(i)*5*time.Millisecond), other.in(2*time.Hour))
		}
		time.Sleep(399 * time.Millisecond)
		l.want(t)
		time.Sleep(102 * time.Millisecond)
		if synctest.Wait(); len(l.calls) != 1 { // with those that are due then
			t.Errorf("called %q, want one renewal", l.calls)
		}
	})
}

func TestSetMovesBothWays(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		late, soon := newLease(d.clock), newLease(d.clock)
		w := d.Watch(late, late.in(10*time.Second), late.in(20*time.Second))
		v := d.Watch(soon, soon.in(15*time.Second), soon.in(30*time.Second))
		time.Sleep(time.Second)
		w.Set(late.in(50*time.Second), late.in(60*time.Second)) // the head goes back
		v.Set(soon.in(2*time.Second), soon.in(3*time.Second))   // and another one forward
		time.Sleep(time.Hour)
		soon.want(t, "renew 2s", "expire 3s")
		late.want(t, "renew 50s", "expire 1m0s")
	})
}

func TestStoppedWatchIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		leases := make([]*lease, 10)
		watches := make([]*Watch, len(leases))
		for i := range leases {
			leases[i] = newLease(d.clock)
			watches[i] = d.Watch(leases[i], leases[i].in(time.Duration(i+1)*time.Second), leases[i].in(time.Minute))
		}
		for i := 0; i < len(leases); i += 2 { // the head among them
			watches[i].Stop()
			watches[i].Stop()
		}
		time.Sleep(time.Hour)
		for i, l := range leases {
			if i%2 == 0 {
				l.want(t)
			} else {
				l.want(t, fmt.Sprintf("renew %v", time.Duration(i+1)*time.Second), "expire 1m0s")
			}
		}
	})
}

// A watch that has ended can be set again, and stopped again.
func TestSetAfterTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		l := newLease(d.clock)
		w := d.Watch(l, clock.Instant{}, l.in(time.Second))
		time.Sleep(2 * time.Second)
		w.Stop()
		w.Set(clock.Instant{}, l.in(3*time.Second))
		time.Sleep(2 * time.Second)
		l.want(t, "expire 1s", "expire 3s")
		w.Set(clock.Instant{}, l.in(10*time.Second))
		w.Stop()
		time.Sleep(time.Minute)
		l.want(t, "expire 1s", "expire 3s")
	})
}

func TestCallbacksMaySetAndStop(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		l, other := newLease(d.clock), newLease(d.clock)
		v := d.Watch(other, other.in(time.Hour), other.in(2*time.Hour))
		var w atomic.Pointer[Watch] // a callback may come before Watch has returned
		renewals := 0
		l.renew = func() {
			if renewals++; renewals == 5 {
				v.Stop()
				return // the last one fails
			}
			now := d.clock.Now()
			w.Load().Set(now.Add(10*time.Second), now.Add(30*time.Second))
			v.Set(now.Add(time.Hour), now.Add(2*time.Hour))
		}
		l.expire = func() { w.Load().Stop() }
		w.Store(d.Watch(l, l.in(10*time.Second), l.in(30*time.Second)))
		time.Sleep(24 * time.Hour)
		l.want(t, "renew 10s", "renew 20s", "renew 30s", "renew 40s", "renew 50s", "expire 1m10s")
		other.want(t)
	})
}

func TestCallbacksMayWatchMore(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		first, second := newLease(d.clock), newLease(d.clock)
		first.expire = func() { d.Watch(second, clock.Instant{}, second.in(2*time.Second)) }
		d.Watch(first, clock.Instant{}, first.in(time.Second))
		time.Sleep(time.Minute)
		first.want(t, "expire 1s")
		second.want(t, "expire 2s")
	})
}

func TestCloseJoinsAndSilences(t *testing.T) {
	inBubble(t, func(t *testing.T, d *Watchdog) {
		l := newLease(d.clock)
		running, closed := make(chan struct{}), make(chan struct{})
		l.renew = func() {
			close(running)
			time.Sleep(time.Second) // a callback must not, but Close waits for it all the same
			select {
			case <-closed:
				t.Error("Close did not wait for the callback")
			default:
			}
		}
		w := d.Watch(l, l.in(0), l.in(time.Minute))
		<-running
		d.Close()
		close(closed)
		d.Close()
		w.Set(l.in(2*time.Second), l.in(3*time.Second))
		w.Stop()
		d.Watch(l, l.in(2*time.Second), l.in(3*time.Second)).Stop()
		d.Watch(l, l.in(2*time.Second), l.in(3*time.Second))
		time.Sleep(time.Hour)
		l.want(t, "renew 0s")
	})
}

func TestCloseBeforeTheFirstLease(t *testing.T) {
	d := NewWatchdog(clock.System())
	d.Close()
	d.Close()
}
