package clock

import (
	"math"
	"math/bits"
	"time"
)

// expirePrecision is what every drift contains, however short the TTL: Redis expires a key up to 1 ms
// off (redis.io/commands/expire, "Expire accuracy"), and 1 ms more is the least drift of short TTLs.
// Redlock's reference implementation adds the same 2 ms.
const expirePrecision = 2 * time.Millisecond

// Drift returns by how much less than its TTL a lease may be believed: ttl × factor, rounded up to a
// nanosecond, for clocks that run at different rates; 2 ms for the precision of Redis' expiry; and the
// uncertainty of the clock the lease is measured with. It is CLOCK_DRIFT in the terms of the Redlock
// algorithm (redis.io, "Distributed Locks with Redis").
//
// The product is exact, of the float64 that factor is: the one nearest to 0.01 lies a trace above it,
// so 1 % of 30 s comes out as 300 ms and a nanosecond.
//
// Drift is never negative and never wraps round; what does not fit is the longest [time.Duration]. A
// negative argument counts as 0. A factor that is not a number, or beyond all reason (2^52), counts as
// infinite.
func Drift(ttl time.Duration, factor float64, uncertainty time.Duration) time.Duration {
	return sum(sum(portion(ttl, factor), expirePrecision), max(0, uncertainty))
}

// Validity returns when a lease ends that was asked for at start: start + ttl - drift. The Redlock
// algorithm's MIN_VALIDITY = TTL - (T2 - T1) - CLOCK_DRIFT is the same thing told at the moment T2, with
// T1 for start. The node got the request after start, so its key outlives the Instant returned.
//
// It is held at the first and the last Instant. A negative drift counts as 0: nothing makes a lease last
// longer than its TTL. Without a start there is no end, and the lease is over.
func Validity(start Instant, ttl, drift time.Duration) Instant {
	return start.Add(difference(ttl, max(0, drift)))
}

// portion returns d × factor, rounded up. It does without floating point, which has 53 bits: from a TTL
// of 104 days on it cannot tell one nanosecond from the next, and might round down.
func portion(d time.Duration, factor float64) time.Duration {
	switch {
	case d <= 0 || factor <= 0:
		return 0
	case !(factor < 1<<52): // NaN too
		return math.MaxInt64
	}
	fraction, exp := math.Frexp(factor)      // factor = fraction × 2^exp, 1/2 <= fraction < 1
	mantissa := uint64(fraction * (1 << 53)) // exact: 53 bits is what a fraction has
	shift := uint(53 - exp)                  // factor = mantissa / 2^shift; at least 1, as exp <= 52

	hi, lo := bits.Mul64(uint64(d), mantissa) // below 2^116
	var whole, rest uint64
	switch {
	case shift < 64:
		if hi>>(shift-1) != 0 { // the result has bit 63, or more than 64 bits
			return math.MaxInt64
		}
		whole, rest = hi<<(64-shift)|lo>>shift, lo<<(64-shift)
	case shift < 128:
		whole, rest = hi>>(shift-64), hi<<(128-shift)|lo
	default:
		whole, rest = 0, 1
	}
	if rest != 0 {
		whole++
	}
	return time.Duration(min(whole, math.MaxInt64))
}
