package clock

import (
	"math"
	"math/big"
	"testing"
	"time"
)

func TestAnInstantNeverSetHasEnded(t *testing.T) {
	var never Instant
	now := NewPortable().Now()
	if !never.IsZero() || now.IsZero() {
		t.Errorf("IsZero: never %v, now %v", never.IsZero(), now.IsZero())
	}
	if !never.Before(now) || !now.After(never) || never.Compare(now) != -1 {
		t.Error("never set is not before the present")
	}
	if end := never.Add(time.Hour); !end.IsZero() {
		t.Errorf("never set + 1h = %v: an hour of lease from nothing", end)
	}
	if left := never.Sub(now); left != math.MinInt64 {
		t.Errorf("never set - now = %v, want the shortest duration", left)
	}
	if ago := now.Sub(never); ago != math.MaxInt64 {
		t.Errorf("now - never set = %v, want the longest duration", ago)
	}
	if d := never.Sub(Instant{}); d != 0 {
		t.Errorf("never set - never set = %v, want 0", d)
	}
	if got := Earlier(now, never); !got.IsZero() {
		t.Errorf("Earlier(now, never set) = %v, want never", got)
	}
	if never.Micros() != 0 || never.String() != "never" {
		t.Errorf("Micros %d, String %q", never.Micros(), never)
	}
}

func TestArithmeticCannotUnsetAnInstant(t *testing.T) {
	set := Instant{5}
	for _, d := range []time.Duration{-5, -6, math.MinInt64} {
		if got := set.Add(d); got.IsZero() || got.After(set) {
			t.Errorf("%v + %v = %v", set, d, got)
		}
	}
}

func TestInstantReadsAsTimeSinceTheOrigin(t *testing.T) {
	i := Instant{int64(90*time.Second + 1500*time.Nanosecond)}
	if got := i.String(); got != "+1m30.0000015s" {
		t.Errorf("String = %q", got)
	}
	if got := i.Micros(); got != 90_000_001 {
		t.Errorf("Micros = %d", got)
	}
}

// instant makes any number an Instant that is set, or never set if it is 0: these are all there are.
func instant(n int64) Instant {
	if n < 0 {
		n = max(floor, -(n + 1))
	}
	return Instant{n}
}

// clamp returns x held between lo and hi.
func clamp(x *big.Int, lo, hi int64) int64 {
	switch {
	case x.Cmp(big.NewInt(lo)) < 0:
		return lo
	case x.Cmp(big.NewInt(hi)) > 0:
		return hi
	}
	return x.Int64()
}

// extremes are the seeds of the fuzz tests: where arithmetic breaks if it breaks.
var extremes = []int64{0, 1, -1, 2, 1e9, -1e9, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1}

func FuzzInstant(f *testing.F) {
	for _, a := range extremes {
		for _, b := range extremes {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, m, n int64) {
		a, b, d := instant(m), instant(n), time.Duration(n)

		want := new(big.Int).Add(big.NewInt(a.ns), big.NewInt(n))
		if got := a.Add(d); a.IsZero() {
			if !got.IsZero() {
				t.Errorf("never + %d = %d", d, got.ns)
			}
		} else if got.ns != clamp(want, floor, far) {
			t.Errorf("%d + %d = %d, want %v, held between %d and %d", a.ns, d, got.ns, want, floor, int64(far))
		}

		if diff := a.Sub(b); !a.IsZero() && !b.IsZero() {
			if int64(diff) != a.ns-b.ns {
				t.Errorf("%d - %d = %d", a.ns, b.ns, diff)
			}
			if back := b.Add(diff); back != a {
				t.Errorf("b + (a - b) = %d, want a = %d", back.ns, a.ns)
			}
		}

		order := a.Compare(b)
		if order != -b.Compare(a) || (order < 0) != a.Before(b) || (order > 0) != a.After(b) || (order == 0) != (a == b) {
			t.Errorf("order of %d and %d contradicts itself", a.ns, b.ns)
		}
		if diff := a.Sub(b); (diff < 0) != (order < 0) || (diff > 0) != (order > 0) {
			t.Errorf("%d - %d = %d, but Compare says %d", a.ns, b.ns, diff, order)
		}
		if e := Earlier(a, b); e != Earlier(b, a) || e.After(a) || e.After(b) || (e != a && e != b) {
			t.Errorf("Earlier(%d, %d) = %d", a.ns, b.ns, e.ns)
		}
	})
}

func FuzzDurations(f *testing.F) {
	for _, a := range extremes {
		for _, b := range extremes {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b int64) {
		x, y := big.NewInt(a), big.NewInt(b)
		if got, want := sum(time.Duration(a), time.Duration(b)), new(big.Int).Add(x, y); int64(got) != clamp(want, math.MinInt64, math.MaxInt64) {
			t.Errorf("sum(%d, %d) = %d, want %v", a, b, got, want)
		}
		if got, want := difference(time.Duration(a), time.Duration(b)), new(big.Int).Sub(x, y); int64(got) != clamp(want, math.MinInt64, math.MaxInt64) {
			t.Errorf("difference(%d, %d) = %d, want %v", a, b, got, want)
		}
	})
}
