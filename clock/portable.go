package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// unnoticed is the length below which a suspend may escape a Portable. It must exceed the noise
	// in the gap between the two clocks, which is read in two steps: a thread may be descheduled
	// in between, and Windows counts wall time in ticks of up to 15.6 ms. And it must be small
	// beside a TTL, because each lease is shortened by it.
	unnoticed = 50 * time.Millisecond

	// slack is the part of unnoticed by which the gap may shrink before it counts as a shrunken
	// one. A wall clock that is being slewed back shrinks it all the time; without slack each
	// reading would take the lock to note it.
	slack = time.Millisecond

	// lead is where a Portable starts: late enough that a program can reckon back from its first
	// reading without running into the first Instant.
	lead = 24 * time.Hour
)

// Portable is the clock for systems whose suspend-aware one is out of reach, and for tests in the fake
// time of testing/synctest. It is made of [time.Now]'s two readings. The monotonic one may stand still
// during a suspend, the wall one does not, so when wall time gains more than the unnoticed 50 ms on
// monotonic time, the gain is taken for a suspend and added to the reading.
//
// It errs on the side of time having passed, which ends leases early:
//
//   - A wall clock set forward looks like a suspend and is counted as one, also when that undoes an
//     earlier step back. It costs the leases that are held, and from there on the reading is ahead
//     of the truth, so that offsets to other clocks have to be learnt anew.
//   - A wall clock slewed forward gains bit by bit. Gains too small to count are kept until together
//     they exceed 50 ms and are counted then. The clock so runs as fast as the faster of its two
//     sources.
//   - A wall clock set or slewed back never moves the reading.
//
// And it has limits:
//
//   - Suspends may go uncounted up to 50 ms in total over any interval; that is its Uncertainty.
//   - A suspend hides behind a step back that comes between the same two readings, for as much as
//     the wall clock was set back: both readings then look as if neither had happened. While an
//     alarm is armed, readings are at most a second apart (plus the suspend).
//   - Its alarms notice a suspend up to a second after the resume. Now notices at once.
type Portable struct {
	read  func() (wall time.Time, mono time.Duration) // wall without a monotonic reading
	since time.Time                                   // the wall time when mono was 0

	mu  sync.Mutex // held to change cur
	cur atomic.Pointer[reckoning]
}

// A reckoning is what a Portable has found out so far. It is immutable, so a reader sees both numbers of
// the same one.
type reckoning struct {
	gap       time.Duration // by how much wall time has gained on monotonic time, as last noted
	suspended time.Duration // what was counted as suspended time; never shrinks
}

// holds reports whether a gap just read tells nothing new.
func (r *reckoning) holds(gap time.Duration) bool {
	return r.gap-slack <= gap && gap <= r.gap+unnoticed-slack
}

var _ Clock = (*Portable)(nil)

// NewPortable returns a clock that starts at this moment. In a synctest bubble, make it inside.
func NewPortable() *Portable {
	start := time.Now()
	return newPortable(func() (time.Time, time.Duration) {
		t := time.Now()
		return t.Round(0), t.Sub(start)
	})
}

func newPortable(read func() (time.Time, time.Duration)) *Portable {
	wall, mono := read()
	p := &Portable{read: read, since: wall.Add(-mono)}
	p.cur.Store(&reckoning{})
	return p
}

// Now implements [Clock]. As long as nothing happens it takes no lock.
func (p *Portable) Now() Instant {
	gap, mono := p.sample()
	r := p.cur.Load()
	if !r.holds(gap) {
		r, mono = p.reckon()
	}
	return Instant{int64(lead)}.Add(mono).Add(r.suspended)
}

// sample reads both clocks.
func (p *Portable) sample() (gap, mono time.Duration) {
	wall, mono := p.read()
	return difference(wall.Sub(p.since), mono), mono
}

// reckon brings cur up to date. It samples anew, under the lock: a sample from before, overtaken on the
// way here by another goroutine that has seen a suspend, would look as if the wall clock had gone
// back, and the next one as a second suspend.
func (p *Portable) reckon() (*reckoning, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap, mono := p.sample()
	r := p.cur.Load()
	if r.holds(gap) {
		return r, mono
	}
	// A shrunken gap is noted as well, because measured from the old one a later suspend would seem
	// shorter by the step back.
	next := &reckoning{gap: gap, suspended: r.suspended}
	if gap > r.gap {
		next.suspended = sum(r.suspended, difference(gap, r.gap))
	}
	p.cur.Store(next)
	return next, mono
}

// Wall implements [Clock].
func (p *Portable) Wall() time.Time {
	wall, _ := p.read()
	return wall
}

// Uncertainty implements [Clock]: 50 ms, the suspended time that may have gone unnoticed.
func (p *Portable) Uncertainty() time.Duration { return unnoticed }

// NewAlarm implements [Clock].
func (p *Portable) NewAlarm() Alarm { return newAlarm(p) }
