package quorum

import (
	"slices"
	"sync"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// lines are the names that somebody in this process waits for.
type lines struct {
	mu     sync.Mutex
	byName map[string]*line
}

// A line is the waiters of one name in this process. They are served in the order in which they came, and only the
// head talks to the nodes. The wake belongs to the line and not to a waiter: a head that leaves takes nothing with it.
type line struct {
	c    *Coordinator
	name string
	all  *lines

	// wake receives when the lock may be free; it has room for one.
	wake chan struct{}

	users int // guarded by all.mu: calls that have joined

	mu      sync.Mutex
	waiters []*waiter
	stops   []func() // of the subscriptions; nil while there are none

	// The wake rule: free are the nodes my last attempt found free, announced those that announced a release since it
	// was sent. A holder of {1,2,3} is never announced by 4 and 5, so neither alone would do.
	free      []bool
	announced []bool
	confirmed []bool // nodes whose messages are heard

	attempts   int // how many were made, to tell late answers of an earlier one
	votes      []Vote
	subscribed bool
}

// join finds or makes the line of a name.
func (ls *lines) join(c *Coordinator, name string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.byName[name]
	if ln == nil {
		n := len(c.nodes)
		ln = &line{
			c: c, name: name, all: ls, wake: make(chan struct{}, 1),
			free: make([]bool, n), announced: make([]bool, n), confirmed: make([]bool, n),
		}
		if ls.byName == nil {
			ls.byName = make(map[string]*line)
		}
		ls.byName[name] = ln
	}
	ln.users++
	return ln
}

// queue puts a waiter at the end of the line.
func (ln *line) queue(w *waiter) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.waiters = append(ln.waiters, w)
	if len(ln.waiters) == 1 {
		close(w.turn)
	}
}

// leave takes a waiter out of the line, wherever it stands, and makes the next one the head. The last one to leave
// ends the subscriptions.
func (ln *line) leave(w *waiter) {
	ln.mu.Lock()
	if i := slices.Index(ln.waiters, w); i >= 0 {
		ln.waiters = slices.Delete(ln.waiters, i, i+1)
		if i == 0 && len(ln.waiters) > 0 {
			close(ln.waiters[0].turn)
		}
	}
	ln.mu.Unlock()

	ln.all.mu.Lock()
	ln.users--
	last := ln.users == 0
	if last {
		delete(ln.all.byName, ln.name)
	}
	ln.all.mu.Unlock()
	if !last {
		return
	}
	ln.mu.Lock()
	stops := ln.stops
	ln.mu.Unlock()
	for _, stop := range stops { // without ln.mu: a listener that is being told something may want it
		stop()
	}
}

// listen subscribes on every node. It returns false if that was done before.
func (ln *line) listen() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.subscribed {
		return false
	}
	ln.subscribed = true
	channel := script.Channel(ln.name)
	for i, n := range ln.c.nodes {
		ln.stops = append(ln.stops, n.Listen(channel, ln.c.cfg.NodeTimeout, func(e node.Event) { ln.hear(i, e) }))
	}
	return true
}

// hear takes in what node i announced.
func (ln *line) hear(i int, e node.Event) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	switch {
	case e.Subscribed:
		// The node may have announced something while we did not hear it: count it as if it had.
		ln.confirmed[i] = true
		ln.announced[i] = true
		ln.signalIfFree()
	case e.Payload == script.Free:
		ln.announced[i] = true
		ln.signalIfFree()
	}
}

// attempting begins an attempt and returns its number: what was announced before it is sent, it will see for itself.
func (ln *line) attempting() int {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	clear(ln.announced)
	clear(ln.free)
	select {
	case <-ln.wake:
	default:
	}
	ln.attempts++
	return ln.attempts
}

// attempted takes in what an attempt found.
func (ln *line) attempted(attempt int, votes []Vote) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if attempt != ln.attempts {
		return
	}
	for i, vote := range votes {
		ln.free[i] = vote.Outcome == Granted
	}
	ln.votes = votes
	ln.signalIfFree()
}

// signalIfFree wakes the head if a quorum of nodes may be free. It is called with ln.mu held.
func (ln *line) signalIfFree() {
	n, news := 0, false
	for i := range ln.free {
		if ln.free[i] || ln.announced[i] {
			n++
		}
		news = news || ln.announced[i]
	}
	if n >= ln.c.need && news {
		ln.signal()
	}
}

// signal wakes the head. It is called with ln.mu held.
func (ln *line) signal() {
	select {
	case ln.wake <- struct{}{}:
	default:
	}
}

// heard tells whether a quorum of nodes has confirmed the subscription.
func (ln *line) heard() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	n := 0
	for _, ok := range ln.confirmed {
		if ok {
			n++
		}
	}
	return n >= ln.c.need
}

// lastWord are the votes of the last attempt.
func (ln *line) lastWord() []Vote {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.votes != nil {
		return slices.Clone(ln.votes) // every error has its own
	}
	votes := make([]Vote, len(ln.c.nodes))
	for i, n := range ln.c.nodes {
		votes[i].Node = n.name
	}
	return votes
}
