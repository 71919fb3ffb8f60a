package quorum

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redquorum/redquorum/clock"
)

// The arithmetic of pace.go, for any readings.

const (
	paceFactor = 0.01
	paceGuard  = 30 * time.Second
)

func newPace() *pace {
	drift := func(d time.Duration) time.Duration { return clock.Drift(d, paceFactor, 0) }
	return &pace{drift: drift, factor: paceFactor}
}

// A run is a node's clock, seen through answers that take their time.
type pacedRun struct {
	t     *rapid.T
	now   clock.Instant
	shows time.Duration
	rate  float64 // how much faster the node's clock runs than ours
}

func newPacedRun(t *rapid.T) *pacedRun {
	start := clock.NewPortable().Now()
	return &pacedRun{t: t, now: start, shows: time.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "shows"))}
}

func (r *pacedRun) pass(d time.Duration) {
	r.now = r.now.Add(d)
	r.shows += d + time.Duration(r.rate*float64(d))
}

// ask reads the node's clock: the request and the answer take a while each.
func (r *pacedRun) ask(p *pace) (off, within time.Duration) {
	asked := r.now
	r.pass(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(r.t, "there")))
	shown := r.shows.Microseconds()
	r.pass(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(r.t, "back")))
	d := p.read(shown, asked, r.now, paceGuard)
	return d.off, d.within
}

func TestClocksWithinTheDriftAreNotBlamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := newPace(), newPacedRun(t)
		for range rapid.IntRange(2, 40).Draw(t, "readings") {
			r.rate = rapid.Float64Range(-paceFactor, paceFactor).Draw(t, "rate")
			r.pass(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "pause")))
			if off, within := r.ask(p); off != 0 || p.off(r.now, paceGuard) != 0 {
				t.Fatalf("blamed for %v within %v", off, within)
			}
		}
	})
}

// What the drift since any reading cannot explain, nor the time that the answers took, is found; and votes do not count
// until the leases that it may concern are over.
func TestJumpThatTheDriftCannotExplainIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := newPace(), newPacedRun(t)
		for range rapid.IntRange(1, 10).Draw(t, "readings") {
			r.rate = rapid.Float64Range(-paceFactor, paceFactor).Draw(t, "rate")
			r.pass(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "pause")))
			r.ask(p)
		}
		idle := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "idle"))
		r.pass(idle)
		// Besides the drift since the last reading: that may be two seconds off, as may the next; the rate may be used up
		// in the other direction.
		least := 2*clock.Drift(idle+4*time.Second, paceFactor, 0) + 4*time.Second
		jump := least + time.Duration(rapid.Int64Range(1000, int64(time.Hour)).Draw(t, "jump"))
		if rapid.Bool().Draw(t, "back") {
			jump = -jump
		}
		r.shows += jump
		off, _ := r.ask(p)
		if off == 0 || (off > 0) != (jump > 0) || off.Abs() > jump.Abs()+least {
			t.Fatalf("a jump by %v was found to be %v", jump, off)
		}
		if got := p.off(r.now, paceGuard); got != paceGuard { // four seconds are more than the drift of any lease
			t.Fatalf("votes do not count for %v, want %v", got, paceGuard)
		}
		r.rate = 0
		r.pass(paceGuard)
		if off, within := r.ask(p); off != 0 || p.off(r.now, paceGuard) != 0 {
			t.Fatalf("still blamed for %v within %v, for %v", off, within, p.off(r.now, paceGuard))
		}
	})
}

// An old reading that was a better one than all since hides no jump: what it tells has grown old.
func TestOldReadingHidesNoJump(t *testing.T) {
	for _, jump := range []time.Duration{time.Second, -time.Second} {
		p := newPace()
		start := clock.NewPortable().Now()
		p.read(0, start, start, paceGuard) // took no time at all
		read := func(after, ahead time.Duration) (off, within time.Duration) {
			asked := start.Add(after)
			d := p.read((after + 5*time.Millisecond + ahead).Microseconds(), asked, asked.Add(10*time.Millisecond), paceGuard)
			return d.off, d.within
		}
		for d := 10 * time.Second; d < time.Hour; d += 10 * time.Second {
			if off, _ := read(d, 0); off != 0 {
				t.Fatalf("blamed for %v after %v", off, d)
			}
		}
		if off, within := read(time.Hour, jump); (off-jump).Abs() > 100*time.Millisecond || within > 20*time.Second {
			t.Errorf("a jump by %v after 10s was found to be %v after %v", jump, off, within)
		}
	}
}

// Answers overtake each other: what was asked before the clock was set tells nothing about it now.
func TestAnswerFromBeforeTheJumpIsNotASecondOne(t *testing.T) {
	p := newPace()
	start := clock.NewPortable().Now()
	at := start.Add
	const ms = time.Millisecond
	p.read(0, at(0), at(ms), paceGuard)
	if off := p.read((500 * ms).Microseconds(), at(100*ms), at(101*ms), paceGuard).off; off < 399*ms || off > 401*ms {
		t.Fatalf("a jump by 400ms was found to be %v", off)
	}
	if off := p.read((50 * ms).Microseconds(), at(50*ms), at(105*ms), paceGuard).off; off != 0 {
		t.Errorf("a late answer was taken for a jump back by %v", off)
	}
}

func TestNumbersOfAMadClockDoNotWrapRound(t *testing.T) {
	p := newPace()
	start := clock.NewPortable().Now()
	p.read(0, start, start, paceGuard)
	for i, shown := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64} {
		at := start.Add(time.Duration(i+1) * time.Second)
		if off := p.read(shown, at, at, paceGuard).off; (off > 0) != (shown > 0) || off == 0 {
			t.Errorf("a clock that went to %d ran off by %v", shown, off)
		}
	}
}

// How far a clock was set lies between two bounds. That it is at least so much shows that it was; how much it is at most
// decides for how long.
func TestJumpIsTakenForTheMostItCanBe(t *testing.T) {
	p := newPace()
	at := clock.NewPortable().Now().Add
	const ms = time.Millisecond
	p.read((400 * ms).Microseconds(), at(0), at(400*ms), paceGuard)         // the question took all the time
	p.read((1900 * ms).Microseconds(), at(1000*ms), at(1400*ms), paceGuard) // set by 900ms, and the answer took it
	if left := p.off(at(1400*ms), paceGuard); left < paceGuard {
		t.Errorf("votes do not count for %v only", left)
	}
}

// An answer that took long shows what the clock was before it was set, and not that it was set back.
func TestAnswerThatWasOvertakenShowsWhatTheClockWas(t *testing.T) {
	p := newPace()
	at := clock.NewPortable().Now().Add
	const ms = time.Millisecond
	p.read((500 * ms).Microseconds(), at(100*ms), at(101*ms), paceGuard) // set ahead by 400ms before the first answer
	if off := p.read((50 * ms).Microseconds(), at(50*ms), at(51*ms), paceGuard).off; off < 399*ms || off > 401*ms {
		t.Errorf("a jump by 400ms was found to be %v", off)
	}
	if off := p.read((600 * ms).Microseconds(), at(200*ms), at(201*ms), paceGuard).off; off != 0 {
		t.Errorf("the same jump was found again, by %v", off)
	}
}

// A node that forgot is compared with what it was: its clock may have been set since, whether it is another machine or not.
func TestNodeThatForgotIsComparedWithWhatItWas(t *testing.T) {
	p := newPace()
	at := clock.NewPortable().Now().Add
	p.serves("first", at(0))
	p.read(0, at(0), at(0), paceGuard)
	p.serves("second", at(time.Second))
	if d := p.read((20 * time.Second).Microseconds(), at(2*time.Second), at(2*time.Second), paceGuard); d.off != 18*time.Second || !d.forgot {
		t.Errorf("a jump by 18s was found to be %+v", d)
	}
	if left := p.off(at(2*time.Second), paceGuard); left != paceGuard {
		t.Errorf("votes do not count for %v, want %v", left, paceGuard)
	}
	if d := p.read((40 * time.Second).Microseconds(), at(3*time.Second), at(3*time.Second), paceGuard); d.off == 0 || d.forgot {
		t.Errorf("a second jump was found to be %+v", d)
	}
}
