package quorum

// MostIdle is how many goroutines a coordinator keeps, see crew.
const MostIdle = mostIdle

// Fix makes everything that a coordinator draws follow from its arguments, so that a simulation can be repeated. It is
// called before the coordinator is used.
func Fix(c *Coordinator, id string, random func() float64) { c.id, c.random = id, random }

// WithDefaults is a configuration as a coordinator has it.
func WithDefaults(c Config) Config { return c.withDefaults() }

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

// Rivals is how many contenders there were besides the first other one, see rivals.
func Rivals(votes []Vote) int { return rivals(votes) }

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
