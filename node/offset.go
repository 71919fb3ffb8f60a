package node

import (
	"sync"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// offset knows how far a node's clock is ahead of ours, as an interval: a reading of the node's clock was taken
// somewhere between the moment we asked and the moment we got the answer.
type offset struct {
	mu     sync.Mutex
	known  bool
	lo, hi int64         // node's microseconds minus ours
	at     clock.Instant // when lo and hi were true
}

// slew is how fast two clocks that are kept by NTP may run apart: 500 ppm each.
const slew = 0.001

// drift is by how many microseconds the clocks may run apart in a time. Two more are for the readings and for the
// drift itself, which are cut off to whole microseconds.
func drift(d time.Duration) int64 { return int64(float64(d.Abs().Microseconds())*slew) + 2 }

// learn takes in the node's time, read between sent and received.
func (o *offset) learn(node int64, sent, received clock.Instant) {
	wide := drift(received.Sub(sent))
	lo, hi := node-received.Micros()-wide, node-sent.Micros()+wide

	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		// What was known has become less certain since; where both agree, the narrower wins. Replies overtake each
		// other, so what was known may as well be the later reading.
		since := received.Sub(o.at)
		wider := drift(since)
		l, h := max(lo, o.lo-wider), min(hi, o.hi+wider)
		switch {
		case l <= h:
			lo, hi = l, h
		case since < 0:
			// Where they do not agree, one of the clocks was set, and the newest reading is the only one that counts.
			return
		}
	}
	o.known, o.lo, o.hi, o.at = true, lo, hi, received
}

// nodeTime tells what the node's clock shows at an instant, at least: with the lower end of the offset, a request's
// last moment comes no later on the node than it does here, but for what the clocks drifted apart since the last reply.
func (o *offset) nodeTime(t clock.Instant) (int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.Micros() + o.lo, o.known
}
