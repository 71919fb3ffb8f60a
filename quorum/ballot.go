package quorum

import (
	"sync"
	"time"

	"github.com/redquorum/redquorum/script"
)

// A ballot gathers the nodes' answers to one question that was put to all of them.
//
// It outlives the decision: stragglers are never cancelled, and what they say still matters (to a rollback, to the
// healing of a lease).
type ballot struct {
	need int
	// changed receives after every answer that may decide something; it has room for one.
	changed chan struct{}

	mu       sync.Mutex
	answers  []answer
	waiting  int
	slowest  time.Duration // of all answers, those that were taken back included
	complete func()        // called once when the last answer is in; nil if nobody asked
}

func (c *Coordinator) newBallot() *ballot {
	b := &ballot{
		need:    c.need,
		changed: make(chan struct{}, 1),
		answers: make([]answer, len(c.nodes)),
		waiting: len(c.nodes),
	}
	for i, n := range c.nodes {
		b.answers[i].vote.Node = n.name
	}
	return b
}

// put takes in the answer of node i.
func (b *ballot) put(i int, a answer) {
	b.mu.Lock()
	if !b.answers[i].in {
		b.waiting--
	}
	a.in = true
	b.answers[i] = a
	b.slowest = max(b.slowest, a.vote.Elapsed)
	var complete func()
	if b.waiting == 0 {
		complete, b.complete = b.complete, nil
	}
	t := b.tally()
	b.mu.Unlock()

	// Where all goes well, whoever waits is not woken before there is a quorum.
	if t.granted >= b.need || t.others() > 0 || t.waiting == 0 {
		select {
		case b.changed <- struct{}{}:
		default: // whoever waits will look at everything anyway
		}
	}
	if complete != nil {
		complete()
	}
}

// reopen takes back the answer of node i, which is asked again.
func (b *ballot) reopen(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answers[i].in {
		b.waiting++
		b.answers[i] = answer{vote: Vote{Node: b.answers[i].vote.Node}}
	}
}

// whenComplete calls f once all answers are in, at once if they are; of several in the order in which they were given.
func (b *ballot) whenComplete(f func()) {
	b.mu.Lock()
	if b.waiting > 0 {
		if before := b.complete; before != nil {
			b.complete = func() { before(); f() }
		} else {
			b.complete = f
		}
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	f()
}

// snapshot returns the answers so far; one that is not in has the outcome Unknown and no error.
func (b *ballot) snapshot() (answers []answer, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]answer(nil), b.answers...), b.waiting
}

// longest is how long the slowest answer took.
func (b *ballot) longest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slowest
}

// missing are the nodes that have not answered.
func (b *ballot) missing() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var nodes []int
	for i, a := range b.answers {
		if !a.in {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// votes returns the votes so far.
func (b *ballot) votes() []Vote {
	b.mu.Lock()
	defer b.mu.Unlock()
	votes := make([]Vote, len(b.answers))
	for i, a := range b.answers {
		votes[i] = a.vote
	}
	return votes
}

// count counts the votes so far.
func (b *ballot) count() tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tally()
}

// tally is count with b.mu held.
func (b *ballot) tally() tally {
	t := tally{waiting: b.waiting}
	for i := range b.answers {
		a := &b.answers[i]
		if !a.in {
			continue
		}
		t.revoked = t.revoked || a.reply.Status == script.Revoked
		switch a.vote.Outcome {
		case Granted:
			t.granted++
		case Held:
			t.held++
		case Failed:
			t.failed++
		case Unknown:
			t.unknown++
		}
	}
	return t
}

// tally counts votes.
type tally struct {
	granted, held, failed, unknown, waiting int

	revoked bool // a node was told of a force-release
}

// others counts the answers that are no grants.
func (t tally) others() int { return t.held + t.failed + t.unknown }

// possible tells whether a quorum can still be granted.
func (t tally) possible(need int) bool { return t.granted+t.waiting >= need }

// blind tells whether so many nodes failed that no quorum of answers can exist.
func (t tally) blind(n, need int) bool { return t.failed+t.unknown > n-need }

// majority is the smallest number of n nodes of which two such sets always share one.
func majority(n int) int { return n/2 + 1 }
