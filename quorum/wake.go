package quorum

import (
	"slices"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// The wake.
//
// The announcements of all nodes become one wake for each name: once for each release, when a quorum of nodes may be free (see the
// flags of a line), and never lost.

// hush ends the subscriptions, if there are any.
func (ln *line) hush() {
	ln.mu.Lock()
	stops := ln.stops
	ln.stops, ln.subscribed = nil, false
	clear(ln.confirmed)
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
	ln.equip()
	channel := script.Channel(ln.key)
	for i, n := range ln.c.nodes {
		ln.stops = append(ln.stops, n.Listen(channel, ln.c.cfg.NodeTimeout, func(e node.Event) { ln.hear(i, e) }))
	}
	return true
}

// hear takes in what node i announced.
func (ln *line) hear(i int, e node.Event) {
	if e.Err != nil {
		n := ln.c.nodes[i].name
		ln.c.guard.warn(n+"/messages", "a node refuses its messages: whoever waits looks every second or so", "node", n, "error", e.Err)
		return
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	switch {
	case e.Subscribed:
		// The node may have announced something while we did not hear it: count it as if it had.
		ln.confirmed[i] = true
		ln.announced[i], ln.owing[i] = true, false
		ln.signalIfFree()
	case e.Payload == script.Free:
		ln.crowd.heard(len(ln.c.nodes), ln.c.clock.Now(), ln.c.roundTrip())
		if ln.owing[i] {
			ln.owing[i] = false
			return
		}
		ln.announced[i] = true
		ln.signalIfFree()
	}
}

// attempting begins an attempt of a waiter and returns its number: what was announced before it is sent, it will see for itself.
func (ln *line) attempting(w *waiter) int {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	clear(ln.announced)
	clear(ln.owing)
	clear(ln.free)
	ln.calm()
	ln.attempts++
	w.attempt = ln.attempts
	return w.attempt
}

// attempted takes in what an attempt found.
func (ln *line) attempted(attempt int, votes []Vote) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if attempt != ln.attempts {
		return
	}
	ln.equip()
	for i, vote := range votes {
		ln.free[i] = vote.Outcome == Granted
	}
	ln.votes, ln.incurable = votes, ln.c.incurable(votes)
	if ln.incurable {
		ln.signal()
	}
	ln.signalIfFree()
}

// hopeless returns the votes of a waiter's last attempt if waiting cannot cure what it has met, else nil. That may be more than was
// in when it was decided: a node that is down is the first to fail.
func (ln *line) hopeless(w *waiter) []Vote {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.attempts != w.attempt || !ln.incurable {
		return nil
	}
	return slices.Clone(ln.votes)
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

// hears tells whether node i's messages are heard.
func (ln *line) hears(i int) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.subscribed && ln.confirmed[i]
}

// awake takes back what was announced until now: whoever looks will see for itself.
func (ln *line) awake() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	clear(ln.announced)
	ln.calm()
}

// woke takes back the announcements that have woken the head, which stays away for a moment: those who came first have the lock
// then. What is announced meanwhile is of a later release, but for what was still owing.
func (ln *line) woke() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for i, announced := range ln.announced {
		ln.owing[i] = !announced
	}
	clear(ln.announced)
	ln.calm()
}

// looking takes back what node i announced, which is about to be looked at. What others announced it cannot tell, nor what this
// one announces after it has answered.
func (ln *line) looking(i int) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.announced[i] = false
	ln.calm()
}

// unseen is a node that has announced a release since the head was woken, if a quorum has that was not looked at after it; -1 if
// there is none. Whoever came first may be gone again. It is called with ln.mu held.
func (ln *line) unseen() int {
	n, last := 0, -1
	for i, announced := range ln.announced {
		if announced {
			n, last = n+1, i
		}
	}
	if n < ln.c.need {
		return -1
	}
	return last
}

// calm takes back a wake. It is called with ln.mu held.
func (ln *line) calm() {
	select {
	case <-ln.wake:
	default:
	}
}
