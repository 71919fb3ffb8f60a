package quorum

import "time"

// Stats is what a coordinator does and knows at a moment, for a page that shows it or a gauge that is scraped.
type Stats struct {
	// Quorum is how many nodes it takes.
	Quorum int
	// Held is how many locks are held, nested holds counted once.
	Held int
	// Waiting is how many calls of Acquire wait for a lock that they could not have at once.
	Waiting int
	// Nodes are the nodes, in their order.
	Nodes []NodeStats
}

// NodeStats is what a coordinator knows of one node. It stems from the requests there were: of a node that nobody has
// asked for an hour it is an hour old.
type NodeStats struct {
	// Node is the node's name.
	Node string
	// Condition is how the node is.
	Condition Condition
	// Left is how long its votes do not count yet, if it is in quarantine or its clock ran off; else 0.
	Left time.Duration
	// RoundTrip is how long its answers take, smoothed; 0 if there never was one.
	RoundTrip time.Duration
	// Err is what became of its last request, if it refuses or is silent; else nil.
	Err error
}

// Stats returns the present state. It asks no node, and can be called at any time.
func (c *Coordinator) Stats() Stats {
	s := Stats{Quorum: c.need, Waiting: c.lines.waiting()}
	c.mu.Lock()
	s.Held = len(c.holds)
	c.mu.Unlock()
	now := c.clock.Now()
	for _, n := range c.nodes {
		off := n.pace.off(now, c.guard.longestTTL())
		n.health.mu.Lock()
		is, left, err := n.health.condition(now, off)
		n.health.mu.Unlock()
		s.Nodes = append(s.Nodes, n.stats(is, left, err))
	}
	return s
}

// stats is what is known of a node in a condition.
func (v *voter) stats(is Condition, left time.Duration, err error) NodeStats {
	return NodeStats{Node: v.name, Condition: is, Left: left, RoundTrip: time.Duration(v.typical.Load()), Err: err}
}

// waiting counts the calls that could not have a lock at once.
func (ls *lines) waiting() (n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.byName {
		ln.mu.Lock()
		for _, w := range ln.waiters {
			if w.waiting.Load() {
				n++
			}
		}
		ln.mu.Unlock()
	}
	return n
}
