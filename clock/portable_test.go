package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// machine is a computer whose suspends and clock settings are ours to make. Real time is what a stopwatch
// beside it would show.
type machine struct {
	mu         sync.Mutex
	wall       time.Time
	mono, real time.Duration
}

func newMachine() *machine {
	return &machine{wall: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
}

func (m *machine) read() (time.Time, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall, m.mono
}

func (m *machine) run(d time.Duration)     { m.move(d, d, d) }
func (m *machine) suspend(d time.Duration) { m.move(d, 0, d) }
func (m *machine) step(d time.Duration)    { m.move(d, 0, 0) }

func (m *machine) move(wall, mono, real time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall, m.mono, m.real = m.wall.Add(wall), m.mono+mono, m.real+real
}

func TestPortableCountsASuspend(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	start := p.Now()
	m.run(time.Second)
	m.suspend(time.Hour)
	m.run(time.Second)
	if got, want := p.Now().Sub(start), time.Hour+2*time.Second; got != want {
		t.Errorf("measured %v, want %v", got, want)
	}
	if got, want := p.Now().Sub(start), time.Hour+2*time.Second; got != want {
		t.Errorf("measured %v at the second reading, want %v: counted twice?", got, want)
	}
}

func TestPortableStartedLongAgoCountsFromItsStart(t *testing.T) {
	m := newMachine()
	m.run(time.Hour)
	m.suspend(time.Hour) // before the clock was made: none of its business
	m.run(time.Hour)
	p := newPortable(m.read)
	origin := Instant{int64(lead)}.Add(2 * time.Hour) // the monotonic time of its making
	m.suspend(time.Minute)                            // before the first reading already
	if got := p.Now().Sub(origin); got != time.Minute {
		t.Errorf("measured %v, want 1m", got)
	}
}

func TestPortableAddsUpSuspendsTooShortToNotice(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	start := p.Now()
	const times, each = 1000, unnoticed / 5
	for range times {
		m.suspend(each)
		m.run(time.Millisecond)
		if missing := m.real - p.Now().Sub(start); missing > p.Uncertainty() || missing < 0 {
			t.Fatalf("after %v the reading is %v behind, more than the stated uncertainty", m.real, missing)
		}
	}
}

func TestPortableTakesAStepForwardForASuspend(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	start := p.Now()
	m.run(time.Second)
	m.step(time.Minute)
	if got, want := p.Now().Sub(start), time.Minute+time.Second; got != want {
		t.Errorf("measured %v, want %v", got, want)
	}
}

func TestPortableIgnoresAStepBack(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	start := p.Now()
	m.run(time.Second)
	m.step(-time.Hour)
	m.run(time.Second)
	if got := p.Now().Sub(start); got != 2*time.Second {
		t.Errorf("measured %v, want 2s", got)
	}
	m.suspend(time.Minute) // shorter than the step: must not drown in it
	if got, want := p.Now().Sub(start), time.Minute+2*time.Second; got != want {
		t.Errorf("measured %v after a suspend, want %v: the step back hid it", got, want)
	}
}

func TestPortableFollowsTheFasterSourceWhileTheWallClockIsSlewed(t *testing.T) {
	const ppm = 500 // as fast as NTP slews
	for _, sign := range []time.Duration{+1, -1} {
		m := newMachine()
		p := newPortable(m.read)
		start := p.Now()
		for range 24 * 60 * 60 {
			m.run(time.Second)
			m.step(sign * (time.Second * ppm / 1_000_000)) //nolint:durationcheck // sign is +1 or -1
			got := p.Now().Sub(start)
			if got < m.real {
				t.Fatalf("slewed by %+d ppm: %v measured as %v", sign*ppm, m.real, got)
			}
			if most := m.real + m.real*ppm/1_000_000; got > most {
				t.Fatalf("slewed by %+d ppm: %v measured as %v, faster than either source", sign*ppm, m.real, got)
			}
		}
	}
}

func TestPortableSurvivesAnAbsurdWallClock(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	last := p.Now()
	for _, year := range []int{2500, 1, 9999, 1970, 9999, 2026} {
		m.mu.Lock()
		m.wall = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		m.mu.Unlock()
		m.run(time.Second)
		now := p.Now()
		if now.Before(last) {
			t.Fatalf("wall clock set to %d: went back from %v to %v", year, last, now)
		}
		last = now
	}
}

func TestPortableUncertaintyHoldsOnTheEdgeOfSlack(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	m.step(-slack) // just not worth noting
	start, since := p.Now(), m.real
	for range 100 {
		m.suspend(time.Millisecond)
		if missing := m.real - since - p.Now().Sub(start); missing > p.Uncertainty() {
			t.Fatalf("the reading is %v behind, more than the stated uncertainty", missing)
		}
	}
}

// Whatever happens to the machine, the reading never goes back; and over any interval it is never behind by more
// than the documented limits, nor ahead by more than the wall clock was set forward and what was still to be
// counted when the interval began.
func TestPortableKeepsItsLimitsThroughAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine()
		p := newPortable(m.read)
		var (
			last, start   Instant
			since         time.Duration // real time at start
			forward, back time.Duration // by how much the wall clock was set since
		)
		begin := func(*rapid.T) {
			start, since = p.Now(), m.real
			forward, back = 0, 0
		}
		begin(t)
		upTo := func(d time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(d)).Draw(t, "duration"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin":      begin,
			"run":        func(*rapid.T) { m.run(upTo(time.Minute)) },
			"doze":       func(*rapid.T) { m.suspend(upTo(2 * unnoticed)) },
			"suspend":    func(*rapid.T) { m.suspend(upTo(time.Hour)) },
			"slew ahead": func(*rapid.T) { d := upTo(2 * slack); forward += d; m.step(d) },
			"slew back":  func(*rapid.T) { d := upTo(2 * slack); back += d; m.step(-d) },
			"set ahead":  func(*rapid.T) { d := upTo(time.Hour); forward += d; m.step(d) },
			"set back":   func(*rapid.T) { d := upTo(time.Hour); back += d; m.step(-d) },
			"": func(t *rapid.T) { // after each of the others
				if rapid.Bool().Draw(t, "unread") {
					return
				}
				now := p.Now()
				if now.Before(last) {
					t.Fatalf("went back from %v to %v", last, now)
				}
				last = now
				measured, real := now.Sub(start), m.real-since
				if measured < real-p.Uncertainty()-back {
					t.Fatalf("%v passed, measured %v; the wall clock was set back by %v", real, measured, back)
				}
				if measured > real+p.Uncertainty()+forward {
					t.Fatalf("%v passed, measured %v; the wall clock was set forward by %v", real, measured, forward)
				}
			},
		})
	})
}

func TestPortableWallIsTheWallClock(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	m.step(-time.Hour)
	if want, _ := m.read(); !p.Wall().Equal(want) {
		t.Errorf("Wall = %v, want %v", p.Wall(), want)
	}
}

func TestPortableRunsInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPortable()
		start := p.Now()
		time.Sleep(1000 * time.Hour)
		if got := p.Now().Sub(start); got != 1000*time.Hour {
			t.Errorf("measured %v of 1000h", got)
		}
		if !p.Wall().Equal(time.Now()) {
			t.Errorf("Wall = %v at %v", p.Wall(), time.Now())
		}
	})
}

// A reader is held up between its two steps while another counts a suspend; its old sample must not pass for a
// step back of the wall clock.
func TestPortableDistrustsASampleThatWasOvertaken(t *testing.T) {
	m := newMachine()
	var meanwhile func()
	p := newPortable(func() (time.Time, time.Duration) {
		wall, mono := m.read()
		if do := meanwhile; do != nil {
			meanwhile = nil
			do()
		}
		return wall, mono
	})
	start := p.Now()
	meanwhile = func() {
		m.suspend(time.Hour)
		p.Now()
	}
	p.Now()
	if got := p.Now().Sub(start); got != time.Hour {
		t.Errorf("measured %v, want 1h", got)
	}
}

// Readers race with each other and with suspends: the counting of a suspend must not be seen twice nor half.
func TestPortableCountsASuspendOnceUnderContention(t *testing.T) {
	m := newMachine()
	p := newPortable(m.read)
	start := p.Now()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			last := p.Now()
			for {
				select {
				case <-stop:
					return
				default:
				}
				now := p.Now()
				if now.Before(last) {
					t.Errorf("went back from %v to %v", last, now)
					return
				}
				last = now
			}
		})
	}
	for range 200 {
		m.suspend(time.Hour)
		m.run(time.Second)
		p.Now()
	}
	close(stop)
	readers.Wait()
	if got := p.Now().Sub(start); got != m.real {
		t.Errorf("%v passed, measured %v", m.real, got)
	}
}
