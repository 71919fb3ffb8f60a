package clock

import (
	"cmp"
	"math"
	"time"
)

// An Instant is a point on a [Clock]. It is a struct, and not a number or a [time.Time], so that
// the compiler refuses to mix it up with a duration or with wall time, which may be set at will.
//
// The zero Instant means "never set" and behaves as minus infinity: it lies before every reading,
// it stays where it is whatever is added to it, and everything is infinitely later than it. So
// whoever forgets to set the start or the end of a lease gets a lease that has ended, never one
// that lasts.
//
// Instants of two clocks, or of two processes, have nothing to do with one another.
type Instant struct {
	// ns counts nanoseconds since the clock's origin; 0 is "never set", set instants lie between
	// floor and far.
	ns int64
}

const (
	floor = 1             // as far back as arithmetic goes: still set, and not after any reading
	far   = math.MaxInt64 // some 292 years after the origin: no clock gets there
)

// Add returns t moved by d, held between the first and the last Instant there is instead of
// wrapping round. Never set stays never set.
func (t Instant) Add(d time.Duration) Instant {
	if t.IsZero() {
		return t
	}
	return Instant{max(floor, int64(sum(time.Duration(t.ns), d)))}
}

// Sub returns how far t lies after u. Against an Instant that was never set that is the longest
// [time.Duration] (or, the other way round, the shortest); between two such it is 0.
func (t Instant) Sub(u Instant) time.Duration {
	switch {
	case t.ns == u.ns:
		return 0
	case u.IsZero():
		return math.MaxInt64
	case t.IsZero():
		return math.MinInt64
	}
	return time.Duration(t.ns - u.ns) // both are positive: this cannot overflow
}

// Before reports whether t is earlier than u.
func (t Instant) Before(u Instant) bool { return t.ns < u.ns }

// After reports whether t is later than u.
func (t Instant) After(u Instant) bool { return t.ns > u.ns }

// Compare returns -1 if t is earlier than u, +1 if it is later, 0 if they are the same.
func (t Instant) Compare(u Instant) int { return cmp.Compare(t.ns, u.ns) }

// IsZero reports whether t was never set.
func (t Instant) IsZero() bool { return t.ns == 0 }

// Micros returns the whole microseconds since the clock's origin; 0 if t was never set. The origin
// is arbitrary: the number is good for the offset to another clock, such as a Redis node's TIME,
// and for nothing else.
func (t Instant) Micros() int64 { return t.ns / int64(time.Microsecond) }

// String returns the time since the clock's origin, or "never".
func (t Instant) String() string {
	if t.IsZero() {
		return "never"
	}
	return "+" + time.Duration(t.ns).String()
}

// Earlier returns the earlier of a and b. Never set is earlier than all, so an end that is optional
// has to be asked for [Instant.IsZero] first.
func Earlier(a, b Instant) Instant { return Instant{min(a.ns, b.ns)} }

// sum adds two durations, held at the limits of the type. Wrapping round would turn a lease of
// centuries into one that ended long ago, or the reverse.
func sum(a, b time.Duration) time.Duration {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// difference is a - b, held likewise.
func difference(a, b time.Duration) time.Duration {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}
