package quorum

import (
	"math"
	"testing"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// A foreign key may have more time left than a duration can hold with something added to it.
func TestCenturiesDoNotWrapRound(t *testing.T) {
	c := &Coordinator{need: 2, clock: clock.NewPortable(), random: func() float64 { return 0.999 }}
	w := &waiter{c: c}
	for _, left := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - time.Hour, time.Hour} {
		held := Vote{Outcome: Held, TTL: left}
		if due := w.due(&verdict{votes: []Vote{held, held, {}}}); due.Sub(c.clock.Now()) < time.Minute {
			t.Errorf("a lock with %v left is due in %v", left, due.Sub(c.clock.Now()))
		}
	}
}
