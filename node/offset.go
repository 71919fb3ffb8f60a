package node

import (
	"sync"

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

// learn takes in the node's time, read between sent and received.
func (o *offset) learn(node int64, sent, received clock.Instant) {
	// Both clocks' readings are cut off to whole microseconds: the interval that surely holds is wider by one.
	lo, hi := node-received.Micros()-1, node-sent.Micros()+1

	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		// What was known has become less certain since; where both agree, the narrower wins. Replies overtake each
		// other, so what was known may as well be the later reading.
		since := received.Sub(o.at)
		wider := int64(float64(since.Abs().Microseconds())*slew) + 1
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

// nodeTime tells what the node's clock shows at an instant, at most: with the lower end of the offset, a request's
// last moment never comes later on the node than it does here.
func (o *offset) nodeTime(t clock.Instant) (int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.Micros() + o.lo, o.known
}
