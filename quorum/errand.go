package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// An errand is one request in the name of a holder, to all nodes or to some.
type errand struct {
	req *script.Prepared
	// until is when the request must have taken effect, besides within the node timeout; zero means no more than that.
	until clock.Instant
	// begun is when the operation started, for Vote.Elapsed.
	begun clock.Instant
	ttl   time.Duration
	// to takes the answers.
	to receiver
	// farewell: the last errand of the lane, repeated until the node confirms that nothing is left (farewell.go).
	farewell bool
}

// A receiver takes the answers to an errand: one from each node that was asked. It is called by the goroutine that reads
// what the node says, and must not block.
type receiver interface {
	put(i int, a answer)
}

// A try is an errand to one node. No goroutine waits for its answer: the node calls it.
type try struct {
	node.Call
	lane   *lane
	errand *errand
	asked  clock.Instant // when, or a moment before: a reading of the clock is a system call
	// settled: it was sent again, when it was decided what the node is worth.
	settled bool

	// Of a farewell: whether the answer was told, how long to wait before it is repeated, and until when it is.
	told   bool
	pause  time.Duration
	giveUp clock.Instant
}

// start begins a try: the lane is its own.
func (l *lane) start(t *try) {
	if !t.errand.farewell || l.part(t) {
		l.send(t)
	}
}

// send sends the request, to be answered within the node timeout.
func (l *lane) send(t *try) {
	until := t.asked.Add(l.node.c.cfg.NodeTimeout)
	if end := t.errand.until; !end.IsZero() {
		until = clock.Earlier(until, end)
	}
	if !t.asked.Before(until) {
		l.conclude(t, judge(l.node.name, script.Reply{}, &node.Error{Node: l.node.name, Err: errTooLate}, 0))
		return
	}
	// Not the caller's context: a request under way runs to its own end, or nobody knows what it did.
	t.Call = node.Call{Request: t.errand.req, Until: until, Deadline: time.Now().Add(l.node.c.cfg.NodeTimeout), To: t}
	l.node.Send(&t.Call)
}

// Answered takes in what the node said.
func (t *try) Answered(reply script.Reply, err error) {
	l := t.lane
	back := t.Received()
	if back.IsZero() {
		back = l.node.c.clock.Now()
	}
	switch {
	case err == nil:
		l.node.answered(back.Sub(t.asked))
		l.node.c.watch(l.node, reply.Now, t.asked, back)
		switch {
		case reply.Status == script.Quarantined:
			l.node.c.guard.reported(l.node.i, reply.TTL)
		case reply.Quarantine > 0:
			l.node.c.guard.reported(l.node.i, reply.Quarantine)
		}
	case errors.Is(err, node.ErrTimeout):
		l.node.silent.Store(true)
	}
	a := judge(l.node.name, reply, err, back.Sub(t.errand.begun))
	a.at = back
	if reply.Status == script.Unsettled && !t.settled {
		l.settle(t, a)
	} else {
		l.conclude(t, a)
	}
}

// settle sends a try again when it is decided what the node is worth. That takes a while, and if the end has come meanwhile
// it is not sent: the lease that a renewal would put back is none any more. So nobody who takes leave waits for it.
func (l *lane) settle(t *try, a answer) {
	l.mu.Lock()
	l.waits = true
	l.mu.Unlock()
	l.node.c.background.do(func() {
		decided := l.node.c.guard.decided(context.Background())
		l.mu.Lock()
		l.waits = l.over || !decided
		idle := l.waits
		l.mu.Unlock()
		if idle {
			l.conclude(t, a)
			return
		}
		again := t.again()
		again.settled = true
		l.send(again) // at once: a node that was restarted empty shall have the lease back
	})
}

// again is the same try once more, now. A call is used once: the node may still look at the last one.
func (t *try) again() *try {
	next := *t
	next.asked = t.lane.node.c.clock.Now()
	return &next
}

// conclude ends a try with its answer.
func (l *lane) conclude(t *try, a answer) {
	e := t.errand
	if e.farewell {
		l.bid(t, a)
		return
	}
	a = l.weigh(e, l.recognise(e, a))
	l.learn(e, a)
	l.node.c.voted(l.node, e.req.Request, &a)
	e.to.put(l.node.i, a)
	l.free()
}
