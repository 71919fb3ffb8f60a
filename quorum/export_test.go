package quorum

// Fix makes everything that a coordinator draws follow from its arguments, so that a simulation can be repeated. It is
// called before the coordinator is used.
func Fix(c *Coordinator, id string, random func() float64) { c.id, c.random = id, random }

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

// Rivals is how many contenders there were besides the first other one, see rivals.
func Rivals(votes []Vote) int { return rivals(votes) }
