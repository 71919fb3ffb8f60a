package clock

import (
	"math"
	"math/big"
	"testing"
	"time"
)

const longest = time.Duration(math.MaxInt64)

func TestDrift(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		name        string
		ttl         time.Duration
		factor      float64
		uncertainty time.Duration
		want        time.Duration
	}{
		{"the default", 30 * time.Second, 0.01, 0, 302*time.Millisecond + 1},
		{"an exact factor", 32 * time.Second, 1. / 64, 0, 502 * time.Millisecond},
		{"the clock's uncertainty is added", 32 * time.Second, 1. / 64, 50 * time.Millisecond, 552 * time.Millisecond},
		{"no TTL is too short for 2 ms", 1, 0.01, 0, 2*time.Millisecond + 1},
		{"years, where a float64 loses nanoseconds", 100*year + 1, 0.5, 0, 50*year + 2*time.Millisecond + 1},
		{"centuries", longest, 0.5, 0, 1<<62 + 2*time.Millisecond},
		{"saturates by the precision", longest, 1 - 1./(1<<53), 0, longest},
		{"saturates by the uncertainty", time.Second, 0.01, longest, longest},
		{"saturates by the factor", longest, 1e9, 0, longest},
		{"negative arguments count as 0", -time.Second, 0.01, -time.Second, 2 * time.Millisecond},
		{"so does a negative factor", time.Second, -0.01, 0, 2 * time.Millisecond},
		{"no number is no excuse to trust", time.Second, math.NaN(), 0, longest},
		{"nor is infinity", time.Second, math.Inf(1), 0, longest},
		{"the smallest factor still rounds up", longest, math.SmallestNonzeroFloat64, 0, 2*time.Millisecond + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Drift(tt.ttl, tt.factor, tt.uncertainty); got != tt.want {
				t.Errorf("Drift(%v, %v, %v) = %v (%d), want %v (%d)",
					tt.ttl, tt.factor, tt.uncertainty, got, got, tt.want, tt.want)
			}
		})
	}
}

func FuzzDrift(f *testing.F) {
	for _, ttl := range extremes {
		for _, factor := range []float64{
			0.01, 0.5, 1. / 3, 1 - 1./(1<<53), 1, 3.7, 1 << 51, 1<<52 - 1, 1 << 52, 1e300, -1,
			1e-9, 1e-18, 1e-19, 1e-38, math.SmallestNonzeroFloat64, math.Inf(1), math.NaN(),
		} {
			f.Add(ttl, factor, ttl)
		}
	}
	f.Fuzz(func(t *testing.T, ttl int64, factor float64, uncertainty int64) {
		got := Drift(time.Duration(ttl), factor, time.Duration(uncertainty))
		if want := referenceDrift(ttl, factor, uncertainty); int64(got) != want {
			t.Errorf("Drift(%d, %v, %d) = %d, want %d", ttl, factor, uncertainty, got, want)
		}
	})
}

// referenceDrift says with rational numbers what Drift promises.
func referenceDrift(ttl int64, factor float64, uncertainty int64) int64 {
	total := big.NewInt(int64(2 * time.Millisecond))
	if ttl > 0 && !(factor <= 0) {
		if !(factor < 1<<52) {
			return math.MaxInt64
		}
		product := new(big.Rat).SetFloat64(factor)
		product.Mul(product, new(big.Rat).SetInt64(ttl))
		ceiling, rest := new(big.Int).QuoRem(product.Num(), product.Denom(), new(big.Int))
		if rest.Sign() > 0 {
			ceiling.Add(ceiling, big.NewInt(1))
		}
		total.Add(total, ceiling)
	}
	if uncertainty > 0 {
		total.Add(total, big.NewInt(uncertainty))
	}
	return clamp(total, 0, math.MaxInt64)
}

func TestValidity(t *testing.T) {
	start := Instant{int64(time.Hour)}
	for _, tt := range []struct {
		name       string
		start      Instant
		ttl, drift time.Duration
		want       Instant
	}{
		{"start + TTL - drift", start, 30 * time.Second, 302 * time.Millisecond, start.Add(29698 * time.Millisecond)},
		{"a drift above the TTL ends it before it started", start, time.Millisecond, 3 * time.Millisecond, start.Add(-2 * time.Millisecond)},
		{"a negative drift prolongs nothing", start, time.Second, -time.Second, start.Add(time.Second)},
		{"the end of time", start, longest, 0, Instant{far}},
		{"the drift is off the TTL, not off the end of time", start, longest, 2 * time.Hour, Instant{far - int64(time.Hour)}},
		{"the beginning of time", start, math.MinInt64, longest, Instant{floor}},
		{"without a start there is no lease", Instant{}, time.Hour, 0, Instant{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Validity(tt.start, tt.ttl, tt.drift); got != tt.want {
				t.Errorf("Validity(%v, %v, %v) = %v, want %v", tt.start, tt.ttl, tt.drift, got, tt.want)
			}
		})
	}
}

func FuzzValidity(f *testing.F) {
	for _, start := range extremes {
		for _, ttl := range extremes {
			for _, drift := range extremes {
				f.Add(start, ttl, drift)
			}
		}
	}
	f.Fuzz(func(t *testing.T, n, ttl, drift int64) {
		start := instant(n)
		got := Validity(start, time.Duration(ttl), time.Duration(drift))
		if start.IsZero() {
			if !got.IsZero() {
				t.Errorf("Validity(never, %d, %d) = %d", ttl, drift, got.ns)
			}
			return
		}
		want := new(big.Int).Add(big.NewInt(start.ns), big.NewInt(ttl))
		want.Sub(want, big.NewInt(max(0, drift)))
		if got.ns != clamp(want, floor, far) {
			t.Errorf("Validity(%d, %d, %d) = %d, want %v, held", start.ns, ttl, drift, got.ns, want)
		}
	})
}

// What all the arithmetic is for: the lease is over before the key is, even if the node's clock is ahead of
// ours by as much as the factor allows, and the reading by as much as the clock may be off.
func FuzzALeaseEndsBeforeItsKey(f *testing.F) {
	f.Add(uint32(30_000), 0.01, uint32(50))
	f.Add(uint32(1), 0.99, uint32(0))
	f.Fuzz(func(t *testing.T, ttlMillis uint32, factor float64, uncertaintyMillis uint32) {
		if !(factor > 0 && factor < 1) {
			t.Skip("refused by the configuration")
		}
		ttl := time.Duration(ttlMillis) * time.Millisecond
		uncertainty := time.Duration(uncertaintyMillis) * time.Millisecond
		start := Instant{int64(time.Hour)}
		end := Validity(start, ttl, Drift(ttl, factor, uncertainty))

		// The node counts the TTL down in a time (1 - factor) × TTL of ours, and a millisecond of
		// imprecision less.
		keyLives := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).SetFloat64(factor))
		keyLives.Mul(keyLives, new(big.Rat).SetInt64(int64(ttl)))
		keyLives.Sub(keyLives, new(big.Rat).SetInt64(int64(time.Millisecond)))
		believed := new(big.Rat).SetInt64(int64(end.Sub(start) + uncertainty))
		if believed.Cmp(keyLives) >= 0 {
			t.Errorf("believed for %v ns, key may live only %v ns", believed.FloatString(3), keyLives.FloatString(3))
		}
	})
}
