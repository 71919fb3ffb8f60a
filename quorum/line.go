package quorum

import (
	"slices"
	"sync"
	"time"
)

// lines are the names that somebody in this process waits for.
type lines struct {
	mu     sync.Mutex
	byName map[string]*line
	wanted int // how many of them somebody has joined
	closed bool
}

// A line is the waiters of one name in this process. They are served in the order in which they came, and only the
// head talks to the nodes. The wake belongs to the line and not to a waiter: a head that leaves takes nothing with it.
type line struct {
	c    *Coordinator
	name string
	key  string // what the nodes know it by
	all  *lines

	// wake receives when the lock may be free; it has room for one. It is nil, like the flags of the wake rule, until somebody
	// could not have the lock at once.
	wake chan struct{}

	users int // guarded by all.mu: calls that have joined; all.wanted counts the lines that have some

	mu      sync.Mutex
	waiters []*waiter
	ours    *hold    // the last one that was had from this line
	stops   []func() // of the subscriptions; nil while there are none

	// The wake rule: free are the nodes my last attempt found free, announced those that announced a release since it
	// was sent. A holder of {1,2,3} is never announced by 4 and 5, so neither alone would do.
	free      []bool
	announced []bool
	owing     []bool // nodes that had not announced it when the head was woken: what comes first from them is about the same release
	confirmed []bool // nodes whose messages are heard

	attempts   int // how many were made, to tell late answers of an earlier one
	votes      []Vote
	incurable  bool // of these more than a quorum can do without are errors that waiting cannot cure
	subscribed bool
	crowd      crowd

	closing *time.Timer // guarded by all.mu: runs while nobody has joined, see linger
}

// linger is how long a line is kept when nobody waits any more: a process that takes a lock again and again would else meet
// the crowd as if for the first time, every time. It does not listen then. Those who listen are counted (crowd.go), and who
// does not wait is in nobody's way.
const linger = 500 * time.Millisecond

// join finds or makes the line of a name.
func (ls *lines) join(c *Coordinator, name string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.find(c, name)
	if ln.users++; ln.users == 1 {
		ls.wanted++
	}
	if ln.closing != nil {
		ln.closing.Stop()
	}
	return ln
}

// equip makes what it takes to wait. It is called with ln.mu held.
func (ln *line) equip() {
	if ln.wake != nil {
		return
	}
	n := len(ln.c.nodes)
	flags := make([]bool, 4*n)
	ln.wake = make(chan struct{}, 1)
	ln.free, ln.announced, ln.owing, ln.confirmed = flags[:n:n], flags[n:2*n:2*n], flags[2*n:3*n:3*n], flags[3*n:]
}

// find finds or makes the line of a name. It is called with ls.mu held.
func (ls *lines) find(c *Coordinator, name string) *line {
	ln := ls.byName[name]
	if ln == nil {
		ln = &line{c: c, name: name, key: c.key(name), all: ls}
		if ls.byName == nil {
			ls.byName = make(map[string]*line)
		}
		ls.byName[name] = ln
	}
	return ln
}

// queue puts a waiter at the end of the line, and returns how many come before it.
func (ln *line) queue(w *waiter) (place int) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.waiters = append(ln.waiters, w)
	behind := len(ln.waiters) > 1
	if behind {
		w.turn = make(chan struct{})
	}
	if behind || ln.ours != nil && !ln.ours.isGone() {
		w.handed = make(chan *Lease, 1)
	}
	return len(ln.waiters) - 1
}

// leave takes a waiter out of the line, wherever it stands, and makes the next one the head. Soon after the last one has
// left, the line is gone.
func (ln *line) leave(w *waiter) {
	ln.mu.Lock()
	if i := slices.Index(ln.waiters, w); i >= 0 {
		ln.waiters = slices.Delete(ln.waiters, i, i+1)
		if i == 0 && len(ln.waiters) > 0 {
			clear(ln.owing) // it may leave while it stays away
			close(ln.waiters[0].turn)
		}
	}
	ln.mu.Unlock()

	ln.all.mu.Lock()
	defer ln.all.mu.Unlock()
	if ln.users--; ln.users == 0 {
		ln.all.wanted--
	}
	ln.empty()
}

// empty decides what becomes of a line if nobody has joined it. It is called with all.mu held.
func (ln *line) empty() {
	held := ln.held()
	ln.mu.Lock()
	contended := ln.subscribed || ln.crowd != crowd{}
	ln.mu.Unlock()
	switch {
	case ln.users > 0:
	case !ln.all.closed && contended:
		ln.hush()
		ln.stay()
	case !ln.all.closed && held: // whoever comes shall know that; given decides anew
	default:
		ln.all.remove(ln)
	}
}

// held tells whether this process has the lock, from this line.
func (ln *line) held() bool {
	h := ln.last()
	return h != nil && !h.isGone()
}

// given takes in that a lock which was had from a line has been given back.
func (ls *lines) given(name string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ln := ls.byName[name]; ln != nil {
		ln.empty()
	}
}

// stay keeps a line for a while that nobody has joined. It is called with all.mu held.
func (ln *line) stay() {
	if ln.closing == nil {
		ln.closing = time.AfterFunc(linger, func() {
			ln.all.mu.Lock()
			defer ln.all.mu.Unlock()
			switch {
			case ln.users > 0:
			case ln.held() && !ln.all.closed: // given decides what becomes of the line
			default:
				ln.all.remove(ln)
			}
		})
		return
	}
	ln.closing.Reset(linger)
}

// remove ends a line that nobody has joined. It is called with ls.mu held.
func (ls *lines) remove(ln *line) {
	if ls.byName[ln.name] == ln {
		delete(ls.byName, ln.name)
	}
	if ln.closing != nil {
		ln.closing.Stop()
	}
	ln.hush()
}

// count is how many names somebody wants. There are lines besides, of locks that this process has.
func (ls *lines) count() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.wanted
}

// close ends the lines that only stay for a while, and lets no other do that.
func (ls *lines) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	for _, ln := range ls.byName {
		if ln.users == 0 {
			ls.remove(ln)
		}
	}
}

// released takes in that node i has given a lock back that this process held, and how many have heard of it. If others
// wait for it, the next one of this process is not to come before them.
func (ls *lines) released(c *Coordinator, name string, i, heard int) {
	if heard == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return
	}
	if ln := ls.byName[name]; ln != nil && heard == 1 && ln.hears(i) {
		return // this process itself
	}
	ln := ls.find(c, name)
	ln.mu.Lock()
	if ln.subscribed && ln.confirmed[i] {
		heard--
	}
	ln.crowd.polite, ln.crowd.others = true, heard
	ln.mu.Unlock()
	if ln.users == 0 {
		ln.stay()
	}
}

// last is the last hold that was had from this line; nil if there was none.
func (ln *line) last() *hold {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.ours
}

// alone tells whether nobody else waits, as far as is known.
func (ln *line) alone() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.crowd.others == 0
}

// lastWord are the votes of the last attempt.
func (ln *line) lastWord() []Vote {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.ours != nil && !ln.ours.isGone() {
		return ln.ours.votes() // it was not asked, and need not be
	}
	if ln.votes != nil {
		return slices.Clone(ln.votes) // every error has its own
	}
	votes := make([]Vote, len(ln.c.nodes))
	for i, n := range ln.c.nodes {
		votes[i].Node = n.name
	}
	return votes
}
