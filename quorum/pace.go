package quorum

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// Clocks that run off.
//
// A lease ends before its keys because two clocks run apart by less than the drift (clock.Drift) of the time that passes.
// Every answer carries what the node's clock showed, at some moment between question and answer; two such readings show
// how far the clocks ran apart in between, at least. Where that is more than the drift, the node's clock was set, or
// runs too fast or too slow (or ours does: nobody can tell which), and its keys end at another moment than whoever holds
// them believes. So the node is reported, and its votes do not count for a while.
//
// For how long: a clock that ran off by d harms the leases whose drift is less than d. Those have a TTL below
// d/DriftFactor, so when that time has passed they are all over, as every lease is after the guard time. How much d is
// at most, the width of both readings tells; and where a clock is slewed, d is what it ran off in all since the last guard
// time, in however many bits that was seen. The guard time may be longer than this client has heard, so a clock that ran
// off is a reason to ask all nodes for it.
//
// A node that has forgotten may be another machine, which shows another time and runs all right. Or its clock was set
// while it is in quarantine, and the quarantine ends at another moment than it should. So its votes do not count either,
// but there is nobody to blame.
//
// What is not seen: a node that nobody asked between two faults of its clock that make up for each other; and a jump
// that the drift of the time between the two readings hides. A client that has not talked to a node before a jump cannot
// know of it. Tokens depend on no clock.

// A pace compares a node's clock with ours. What it knows of is how far the one is ahead of the other: at most ceiling,
// at least floor, each as of the reading that tells it best.
type pace struct {
	drift  func(time.Duration) time.Duration // how far clocks may run apart in a time
	factor float64                           // the part of it that grows with time

	mu          sync.Mutex
	known       bool
	floor       bound
	ceiling     bound
	since       clock.Instant // of the last that was found; what was asked before tells of a clock that has been set since
	total       time.Duration // that it ran off, at most, in the bits that were found since it was last all right
	until       clock.Instant // the node's votes do not count before, nor longer than for the guard time
	incarnation string        // of the node's memory
	forgot      bool          // it is another one since the last reading
}

// A deviation is what two readings of a node's clock show that the drift does not explain: by how much it ran off, and in
// what time. A positive one ran ahead; 0 if it need not have.
type deviation struct {
	off, within time.Duration
	forgot      bool // the node forgot in between, and may be another machine
}

// A bound is how many microseconds the node's clock was ahead of ours, at most or at least, at an instant.
type bound struct {
	ahead int64
	at    clock.Instant
}

// read takes in that the node's clock showed a time, in microseconds, at some moment between asked and answered. It
// returns how it ran off since an earlier reading. What was found before guard is over and done with.
func (p *pace) read(shown int64, asked, answered clock.Instant, guard time.Duration) deviation {
	// The node read its clock when it was asked, or when we were answered, or in between. Where that leaves room, the
	// node is right: each bound comes with the moment for which it is true.
	shown = max(-maddest, min(shown, maddest))
	least, most := bound{shown - answered.Micros(), answered}, bound{shown - asked.Micros(), asked}

	p.mu.Lock()
	defer p.mu.Unlock()
	if asked.Before(p.since) {
		return deviation{}
	}
	if !p.known {
		p.known, p.forgot, p.floor, p.ceiling = true, false, least, most
		return deviation{}
	}
	d := deviation{forgot: p.forgot}
	p.forgot = false
	var worst time.Duration
	if ahead := micros(least.ahead - p.ceiling.ahead); ahead > p.drift(apart(answered, p.ceiling.at)) {
		d.off, d.within = ahead, apart(answered, p.ceiling.at)
		most := micros(most.ahead-p.floor.ahead) + p.drift(apart(asked, p.floor.at))
		worst = max(ahead, most)
	}
	if behind := micros(p.floor.ahead - most.ahead); behind > p.drift(apart(asked, p.floor.at)) {
		d.off, d.within = -behind, apart(asked, p.floor.at)
		most := micros(p.ceiling.ahead-least.ahead) + p.drift(apart(answered, p.ceiling.at))
		worst = max(behind, most)
	}
	if d.off == 0 {
		// Of two readings the one counts that tells more now, after what they lose with time.
		if p.worth(most, p.ceiling, 1) {
			p.ceiling = most
		}
		if p.worth(least, p.floor, -1) {
			p.floor = least
		}
		return deviation{}
	}
	found := answered
	if answered.Before(p.floor.at) {
		// An answer that was overtaken: the clock was set after it, and what is known is what it shows now.
		d.off, found = -d.off, p.floor.at
	} else {
		p.floor, p.ceiling = least, most
	}
	if found.Sub(p.since) >= guard {
		p.total = 0
	}
	p.total = min(p.total+worst, century)
	p.since = found
	if till := found.Add(time.Duration(min(float64(century), float64(p.total)/p.factor))); till.After(p.until) {
		p.until = till
	}
	return d
}

// worth tells whether a new bound is the tighter one, when the clocks have run apart since the older of the two as far
// as they may. An upper bound has the sign 1, a lower one -1.
func (p *pace) worth(fresh, old bound, sign int64) bool {
	lost := int64(p.factor * float64(fresh.at.Sub(old.at).Microseconds())) // negative if the fresh one is the older
	return sign*fresh.ahead <= sign*old.ahead+lost
}

// century is longer than any lease.
const century = 100 * 365 * 24 * time.Hour

// off tells how long the node's votes do not count yet; 0 if they do. No lease is longer than guard, by what is known now.
func (p *pace) off(now clock.Instant, guard time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.IsZero() {
		return 0
	}
	return max(0, clock.Earlier(p.until, p.since.Add(guard)).Sub(now))
}

// serves takes in what incarnation of the node's memory a check found. Another one than before may be another machine with
// another clock, and what was asked before now tells of the clock that it had.
func (p *pace) serves(incarnation string, now clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.incarnation != incarnation {
		if p.incarnation != "" {
			p.forgot, p.since = true, now
		}
		p.incarnation = incarnation
	}
}

// maddest is the latest time, in microseconds, that is worth comparing: 36,000 years. What a node shows is not ours to
// trust, and nothing shall wrap round.
const maddest = 1 << 60

// micros is a number of microseconds as a duration, or the longest one.
func micros(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Microsecond)
	return time.Duration(max(-most, min(n, most))) * time.Microsecond
}

// apart is the time between two instants.
func apart(a, b clock.Instant) time.Duration { return a.Sub(b).Abs() }

// watch compares a node's clock with ours, and reports one that runs off.
func (c *Coordinator) watch(v *voter, shown int64, asked, answered clock.Instant) {
	guard := c.guard.longestTTL()
	before := v.pace.off(answered, guard)
	d := v.pace.read(shown, asked, answered, guard)
	if d.off == 0 || before > 0 {
		return // it is all right, or known
	}
	c.guard.ask()
	c.hurry()
	text := "a node's clock ran off from ours by more than the drift: its votes do not count for a while"
	if d.forgot {
		text = "a node that forgot shows another time than before, as another machine would: its votes do not count for a while"
	}
	c.log.Warn(text, "node", v.name, "ahead", d.off, "within", d.within, "drift", c.drift(d.within),
		"for", v.pace.off(answered, guard))
	c.show(v, answered)
	wrong := 0
	for _, n := range c.nodes {
		if n.pace.off(answered, guard) > 0 {
			wrong++
		}
	}
	if all := wrong > len(c.nodes)-c.need; c.clockDoubted.Swap(all) != all && all {
		c.log.Warn("the clocks of so many nodes ran off that no quorum is left: more likely it was this machine's clock",
			"nodes", wrong)
	}
}

// hurry renews all leases: a node whose vote was counted may have let go of them, and it is now that a quorum without it,
// or the key restored there, can keep somebody else out.
func (c *Coordinator) hurry() {
	c.mu.Lock()
	holds := slices.Collect(maps.Keys(c.holds))
	c.mu.Unlock()
	for _, h := range holds {
		h.hurry()
	}
}

// ranOff is the error of a vote that does not count for another while.
func ranOff(left time.Duration) error { return fmt.Errorf("%w, for %v", ErrClock, left) }
