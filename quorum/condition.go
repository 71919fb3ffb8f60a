package quorum

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
)

// A Condition is how a node is, as far as requests to it show. Nobody asks a node only to find out.
type Condition int

// The conditions, from good to bad.
const (
	// NodeUntried: it has not been asked anything yet.
	NodeUntried Condition = iota
	// NodeAnswering: it answered the last request, and its votes count.
	NodeAnswering
	// NodeQuarantined: it answers, but was restarted and may have forgotten locks. Its votes for new leases do not count
	// for a while (ErrQuarantined).
	NodeQuarantined
	// NodeClockOff: it answers, but its clock ran off from ours by more than the drift. Its votes do not count for a while
	// (ErrClock).
	NodeClockOff
	// NodeRefusing: it answers with errors: credentials, permissions, a server that is loading its data or is a replica.
	NodeRefusing
	// NodeSilent: it gave no answer to the last request within the node timeout, or cannot be reached.
	NodeSilent
)

// String returns the condition in lower case.
func (c Condition) String() string {
	switch c {
	case NodeUntried:
		return "untried"
	case NodeAnswering:
		return "answering"
	case NodeQuarantined:
		return "quarantined"
	case NodeClockOff:
		return "clock-off"
	case NodeRefusing:
		return "refusing"
	case NodeSilent:
		return "silent"
	}
	return fmt.Sprintf("Condition(%d)", int(c))
}

// votes tells whether a node may be counted on.
func (c Condition) votes() bool { return c <= NodeAnswering }

// health is what a coordinator knows of a node's condition.
type health struct {
	at    atomic.Int64 // when the last answer came, in microseconds on our clock
	shown atomic.Int32 // the condition that was told last

	mu     sync.Mutex
	last   Condition     // by the last request alone: untried, answering, refusing or silent
	err    error         // of a node that refuses or is silent
	failed clock.Instant // when that came
	rests  clock.Instant // the end of its quarantine
	check  int           // the number of the check that found it

	silence, refusal notice // what the log has been told
}

// heard takes in what a node's answer, or the lack of one, tells about its condition. Nearly always that is nothing new.
func (c *Coordinator) heard(n *voter, a *answer) {
	h := &n.health
	if a.err == nil {
		h.at.Store(a.at.Micros())
		if Condition(h.shown.Load()) == NodeAnswering {
			return // a quarantine is found by a check, a clock that ran off by watch
		}
	}
	now := c.clock.Now()
	h.mu.Lock()
	switch {
	case a.err == nil && a.at.Before(h.failed): // it came before that, and was overtaken on the way to us
	case a.err == nil:
		h.last, h.err = NodeAnswering, nil
	case errors.Is(a.err, errTooLate), errors.Is(a.err, node.ErrClosed):
		h.mu.Unlock()
		return // nobody has asked the node
	case refusing(a.err):
		h.at.Store(a.at.Micros())
		h.last, h.err, h.failed = NodeRefusing, a.err, a.at
	case a.at.Add(-a.vote.Elapsed).Micros() >= h.at.Load():
		h.last, h.err, h.failed = NodeSilent, a.err, a.at
	default: // it answered what it was asked later
	}
	h.mu.Unlock()
	c.show(n, now)
}

// refusing tells whether a request failed because the node said so.
func refusing(err error) bool {
	return node.Refused(err) || errors.Is(err, node.ErrReplica) || errors.Is(err, node.ErrUnguarded)
}

// rests takes in that a node is in quarantine for so long, 0 if it is in none, by the check of that number. A later one has found
// what counts.
func (c *Coordinator) rests(n *voter, check int, left time.Duration) {
	now := c.clock.Now()
	h := &n.health
	h.mu.Lock()
	if check < h.check {
		h.mu.Unlock()
		return
	}
	h.check, h.rests = check, clock.Instant{}
	if left > 0 {
		h.rests = now.Add(left)
	}
	if h.last == NodeUntried {
		h.last = NodeAnswering
	}
	h.mu.Unlock()
	c.show(n, now)
}

// condition is how a node is at an instant, how long its votes do not count yet, and what is wrong with it. off is how
// long they do not for its clock. It is called with h.mu held.
func (h *health) condition(now clock.Instant, off time.Duration) (is Condition, left time.Duration, err error) {
	switch {
	case h.last != NodeAnswering:
		return h.last, 0, h.err
	case off > 0:
		return NodeClockOff, off, nil
	case now.Before(h.rests):
		return NodeQuarantined, h.rests.Sub(now), nil
	}
	return NodeAnswering, 0, nil
}

// show tells the log and the tracer of a node's condition, if it has changed. The beginning of a quarantine, and that a clock
// ran off, the log hears where they are found: see guard.go and pace.go.
func (c *Coordinator) show(n *voter, now clock.Instant) {
	off := n.pace.off(now, c.guard.longestTTL())
	h := &n.health
	h.mu.Lock()
	is, left, err := h.condition(now, off)
	was := Condition(h.shown.Swap(int32(is)))
	falls := is == NodeSilent && h.silence.begin(now)
	refuses := is == NodeRefusing && h.refusal.begin(now)
	back := false
	if is != NodeSilent && is != NodeRefusing {
		fell, refused := h.silence.end(now), h.refusal.end(now)
		back = fell || refused
	}
	h.mu.Unlock()
	switch {
	case falls:
		c.log.Warn("a node does not answer", "node", n.name, "error", err)
	case refuses:
		c.log.Warn("a node refuses requests", "node", n.name, "error", err)
	case back:
		c.log.Info("a node answers again", "node", n.name)
	case is == NodeAnswering && (was == NodeQuarantined || was == NodeClockOff):
		c.log.Info("a node's votes count again", "node", n.name)
	}
	c.tally(now)
	if was != is && c.trace.node != nil {
		c.trace.node.TraceNode(TraceNodeData{Was: was, NodeStats: n.stats(is, left, err)})
	}
}

// tally logs that too few nodes are left for a quorum, and that there are enough again.
func (c *Coordinator) tally(now clock.Instant) {
	counts := 0
	for _, n := range c.nodes {
		if Condition(n.health.shown.Load()).votes() {
			counts++
		}
	}
	c.mu.Lock()
	few := counts < c.need && c.outage.begin(now)
	enough := counts >= c.need && c.outage.end(now)
	c.mu.Unlock()
	switch {
	case few:
		c.log.Error("too few nodes are left whose votes count: no lock can be taken", "nodes", counts, "need", c.need)
	case enough:
		c.log.Info("enough nodes are there whose votes count: locks can be taken again", "nodes", counts, "need", c.need)
	}
}

// A notice is something that the log is told once, and its end. What comes and goes all the time is told now and then.
type notice struct {
	told bool
	next clock.Instant // not before
}

// noticeEvery is how long it takes at least from the end of something until the log hears of it again.
const noticeEvery = 10 * time.Second

// begin tells whether to tell the log that it has begun.
func (n *notice) begin(now clock.Instant) bool {
	if n.told || now.Before(n.next) {
		return false
	}
	n.told = true
	return true
}

// end tells whether to tell the log that it has ended.
func (n *notice) end(now clock.Instant) bool {
	if !n.told {
		return false
	}
	n.told, n.next = false, now.Add(noticeEvery)
	return true
}
