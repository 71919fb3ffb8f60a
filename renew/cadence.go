package renew

import (
	"time"

	"github.com/redquorum/redquorum/clock"
)

// A Cadence says when a lease is renewed.
type Cadence struct {
	// TTL of the lease: renewed every third of it, as in Redisson, so that two renewals may fail.
	TTL time.Duration
	// NodeTimeout is how long one node has for one operation: the first repetition comes that soon.
	NodeTimeout time.Duration
}

// Next is when to renew a lease whose last successful request started at start.
func (c Cadence) Next(start clock.Instant) clock.Instant { return start.Add(c.TTL / 3) }

// Again is when to repeat what has failed, or what missed some node, for the n-th time in a row (n >= 1): after one
// node timeout, then two, four, … and at most a sixth of the TTL.
func (c Cadence) Again(now clock.Instant, n int) clock.Instant {
	pause := c.TTL / 6
	if shift := max(n, 1) - 1; c.NodeTimeout < pause>>shift {
		pause = c.NodeTimeout << shift
	}
	return now.Add(max(pause, time.Millisecond))
}
