package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Fix makes everything that a coordinator draws follow from its arguments, so that a simulation can be repeated. It is
// called before the coordinator is used.
func Fix(c *Coordinator, id string, random func() float64) { c.id, c.random = id, random }

// Majority is the quorum of n nodes.
func Majority(n int) int { return majority(n) }

// ContextsOf is how many contexts a lease keeps track of.
func ContextsOf(l *Lease) int {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return len(l.contexts)
}

// LinesOf is how many names a coordinator keeps a line for.
func LinesOf(c *Coordinator) int {
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	return len(c.lines.byName)
}

// NamesWaitedFor is how many names calls have joined the line of.
func NamesWaitedFor(c *Coordinator) int { return c.lines.count() }

// WarningsOf is how many warnings a coordinator remembers to have given.
func WarningsOf(c *Coordinator) int {
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	return len(c.guard.told)
}

// Rivals is how many contenders there were besides the first other one, see rivals.
func Rivals(votes []Vote) int { return rivals(votes) }

// CompanySize is how many others were met who met these holders, one after each pause.
func CompanySize(pause time.Duration, holders ...string) int {
	var co company
	now := clock.System().Now()
	for _, h := range holders {
		co.meet(h, now)
		now = now.Add(pause)
	}
	return co.size()
}

// HoldsOf is how many leases a coordinator knows of, nested ones of one holder counted once.
func HoldsOf(c *Coordinator) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.holds)
}

// WaitersOf is how many calls stand in line.
func WaitersOf(c *Coordinator) (n int) {
	c.lines.each(func(ln *line) { n += len(ln.waiters) })
	return n
}

// ListeningOf is how many lines are heard by a quorum.
func ListeningOf(c *Coordinator) (n int) {
	c.lines.each(func(ln *line) {
		heard := 0
		for _, ok := range ln.confirmed {
			if ok {
				heard++
			}
		}
		if heard >= c.need {
			n++
		}
	})
	return n
}

func (ls *lines) each(f func(ln *line)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.byName {
		ln.mu.Lock()
		f(ln)
		ln.mu.Unlock()
	}
}

// Restate tells the nodes a hold count, as whoever does that had looked whether the lease lives a moment ago.
func Restate(l *Lease, count int) { l.hold.restate(count) }

// UntracedAllocations is how many allocations the places cost together at which a tracer is told something, where there is
// none.
func UntracedAllocations(l *Lease) float64 {
	c, ctx := l.hold.c, context.Background()
	var req script.Request = script.Acquire{Name: "stock"}
	a := answer{vote: Vote{Node: c.nodes[0].name, Outcome: Granted}, at: c.clock.Now()}
	w := &waiter{c: c, line: &line{}}
	return testing.AllocsPerRun(100, func() {
		ctx, begun := c.asks(ctx, "acquire", "stock")
		w.waiting.Store(false)
		w.waits(1)
		w.waited(l, nil)
		c.voted(c.nodes[0], req, &a)
		c.asked(ctx, "acquire", "stock", begun, l, nil)
		l.hold.traceRenewal(begun, false, nil)
	})
}

// Heard takes in what a request to node i came to, an answer if err is nil, so long ago.
func Heard(c *Coordinator, i int, err error, ago time.Duration) {
	n := c.nodes[i]
	a := judge(n.name, script.Reply{Status: script.Granted}, err, 0)
	a.at = c.clock.Now().Add(-ago)
	c.heard(n, &a)
}

// Checked takes in what a check of node i found.
func Checked(c *Coordinator, i int, r script.Record) { c.guard.checked(i, r) }

// SameServer tells whether two addresses are known to lead to one server.
func SameServer(c *Coordinator) bool { return c.sameServer.Load() }

// CountsInQuarantine reports whether a renewal's vote counts on node i in quarantine, if it was begun and answered at these
// times from the end of the node's last counted vote for the lease.
func CountsInQuarantine(l *Lease, i int, begun, answered time.Duration) bool {
	lane := &l.hold.lanes[i]
	end := lane.voted
	defer func() { lane.voted = end }()
	a := judge(lane.node.name, script.Reply{Status: script.Restored, Quarantine: time.Minute}, nil, 0)
	a.at = end.Add(answered)
	return lane.weigh(&errand{begun: end.Add(begun), ttl: l.hold.ttl}, a).vote.Outcome == Granted
}

// MayBePresentAfter reports whether the lock may be on a node that has answered its acquire with an error.
func MayBePresentAfter(c *Coordinator, err error) bool {
	lane := &c.newClaim("stock").lanes[0]
	lane.learn(&errand{req: script.Prepare(script.Acquire{Name: "stock"})}, judge(lane.node.name, script.Reply{}, err, 0))
	present, _ := lane.state()
	return present
}
