package renew

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redquorum/redquorum/clock"
)

func TestRenewalsComeEveryThird(t *testing.T) {
	start := clock.System().Now()
	for ttl, want := range map[time.Duration]time.Duration{
		30 * time.Second: 10 * time.Second, time.Second: time.Second / 3, time.Millisecond: time.Millisecond / 3,
	} {
		if got := (Cadence{TTL: ttl, NodeTimeout: 1}).Next(start).Sub(start); got != want {
			t.Errorf("a TTL of %v is renewed after %v, want %v", ttl, got, want)
		}
	}
}

func TestRepetitionsBackOff(t *testing.T) {
	now := clock.System().Now()
	const ms = time.Millisecond
	for _, tt := range []struct {
		ttl, nodeTimeout time.Duration
		want             []time.Duration // for n = 1, 2, …
	}{
		{30 * time.Second, 500 * ms, []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms}},
		{time.Second, 50 * ms, []time.Duration{50 * ms, 100 * ms, time.Second / 6, time.Second / 6}},
		{300 * ms, 60 * ms, []time.Duration{50 * ms, 50 * ms}},
		{time.Hour, time.Hour, []time.Duration{10 * time.Minute, 10 * time.Minute}},
		{4 * ms, ms, []time.Duration{ms, ms}}, // never without a pause
		{30 * time.Second, 0, []time.Duration{ms, ms, ms}},
		{math.MaxInt64, math.MaxInt64 / 4, []time.Duration{math.MaxInt64 / 6, math.MaxInt64 / 6}},
	} {
		c := Cadence{TTL: tt.ttl, NodeTimeout: tt.nodeTimeout}
		for i, want := range tt.want {
			if got := c.Again(now, i+1).Sub(now); got != want {
				t.Errorf("TTL %v, node timeout %v, repetition %d: after %v, want %v", tt.ttl, tt.nodeTimeout, i+1, got, want)
			}
		}
	}
}

// However long it has been failing: never sooner than before, never without a pause, never beyond a sixth of the TTL.
func TestRepetitionsKeepTheirLimits(t *testing.T) {
	now := clock.System().Now()
	rapid.Check(t, func(t *rapid.T) {
		c := Cadence{
			TTL:         time.Duration(rapid.Int64Range(1, math.MaxInt64/4).Draw(t, "TTL")),
			NodeTimeout: time.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "NodeTimeout")),
		}
		n := rapid.IntRange(0, math.MaxInt-1).Draw(t, "n")
		pause, next := c.Again(now, n).Sub(now), c.Again(now, n+1).Sub(now)
		if pause < time.Millisecond || pause > max(c.TTL/6, time.Millisecond) || next < pause {
			t.Fatalf("%+v: repetition %d after %v, the next one after %v", c, n, pause, next)
		}
	})
}
