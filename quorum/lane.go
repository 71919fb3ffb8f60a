package quorum

import (
	"errors"
	"sync"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// A lane carries the requests of one holder to one node: one at a time, the newest state last.
//
// Two requests of a holder that overtake each other on their way would leave the older state behind. And since a
// request tells a state and not a change, one that waits is simply replaced by a newer one; a node that hangs makes
// no queue.
//
// The farewell does not wait: it leaves right behind the request that is under way, over the same connection, and a node that
// is late has it all the sooner. Where it got there first after all, since that request was sent once more or over a
// connection that broke, it is said again (farewell.go).
type lane struct {
	node *voter

	mu   sync.Mutex
	next *try

	busy      bool  // a request is under way, besides the farewell
	waits     bool  // for it to be decided what the node is worth: the request that is under way
	over      bool  // the farewell was put: nothing comes after it
	present   bool  // the holder may have the lock on this node
	confirmed bool  // by its last answer the node has the holder, whether that counts as a vote or not
	acquires  uint8 // how many were answered; two is as good as more

	// horizon is the last moment, on the node's clock, of a request that was sent and not answered; until then it may still
	// make the holder present.
	horizon int64
	// fence is the highest token the node is known to store.
	fence int64
	// keyEnd is when the key runs out on the node at the earliest, by the last request that set it.
	keyEnd clock.Instant
	// voted is until when the node's last vote for this holder counts.
	voted clock.Instant
	// last is the node's last word, without the name.
	last word
}

// A word is what is kept of a vote: of ten thousand leases there are fifty thousand.
type word struct {
	outcome      Outcome
	holder       string
	ttl, elapsed time.Duration
	err          error
}

// errSuperseded is a request that gave way to a newer one before it was sent.
var errSuperseded = errors.New("superseded by a newer request")

// put sends an errand as soon as the one under way is back or given up, in place of any that waits.
func (l *lane) put(t *try) {
	l.mu.Lock()
	var dropped *try
	begin := false
	switch {
	case l.over:
		dropped = t
	case t.errand.farewell:
		dropped, l.next = l.next, nil
		l.over, begin = true, true
		l.node.c.errands.Add(1)
	case l.busy:
		dropped, l.next = l.next, t
	default:
		l.busy, begin = true, true
		l.node.c.errands.Add(1)
	}
	l.mu.Unlock()
	if begin {
		l.start(t)
	}
	if dropped != nil {
		dropped.errand.to.put(l.node.i, judge(l.node.name, script.Reply{}, &node.Error{Node: l.node.name, Err: errSuperseded}, 0))
	}
}

// free goes on with the errand that waits, if there is one.
func (l *lane) free() {
	l.mu.Lock()
	t := l.next
	l.next = nil
	l.busy, l.waits = t != nil, false
	l.mu.Unlock()
	if t != nil {
		t.asked = l.node.c.clock.Now()
		l.start(t)
	} else {
		l.node.c.errands.Done()
	}
}

// learn keeps what an answer tells about the node.
func (l *lane) learn(e *errand, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := a.vote
	l.last, l.confirmed = word{v.Outcome, v.Holder, v.TTL, v.Elapsed, v.Err}, false
	if a.err != nil {
		if node.Sent(a.err) {
			l.present = true
			// A release that arrives late does no harm: nothing of this holder comes after it.
			var sent *node.Error
			if errors.As(a.err, &sent) && !e.farewell {
				l.horizon = max(l.horizon, sent.Last)
			}
		}
		return
	}
	switch a.reply.Status {
	case script.Already:
		l.present = true
		l.node.c.twice(l.node)
	case script.Granted, script.Renewed, script.Restored:
		l.suspect(a.reply)
		l.present, l.confirmed = true, true
		l.fence = max(l.fence, a.reply.Fence)
		l.keyEnd = e.begun.Add(e.ttl)
	case script.Raised:
		l.confirmed = true
		l.fence = max(l.fence, a.reply.Fence)
	case script.Held, script.Absent, script.Released, script.Revoked:
		// Not there now; but a request that is still on its way may yet arrive.
		l.present = a.reply.Now <= l.horizon
		l.fence = max(l.fence, a.reply.Fence)
	case script.Quarantined:
		l.present = a.reply.Now <= l.horizon
	case script.Unsettled, script.Stranger, script.Expired, script.Exhausted, script.Stored, script.Probed, script.Settled:
	}
}

// recognise tells a node that knows this holder because it was asked before from one that never was. A network that
// delivers a request twice may grant a question that was answered "held" the first time, and the next one then finds
// itself there: granted. The first question of a holder that was never used before can find nothing of its own.
func (l *lane) recognise(e *errand, a answer) answer {
	if _, acquire := e.req.Request.(script.Acquire); !acquire {
		return a
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acquires = min(l.acquires+1, 2)
	if l.acquires > 1 && a.reply.Status == script.Already {
		a.reply.Status = script.Granted
		a.vote = judge(l.node.name, a.reply, nil, a.vote.Elapsed).vote
	}
	return a
}

// weigh decides whether a grant counts as a vote. That of a node whose clock runs off does not: nobody knows when its keys
// end. That of a node in quarantine does only while the node's last vote for this holder has not run out: so long it cannot
// have voted for anybody else, and forgotten it. If restores always counted, a lease that never had this node would get its
// vote while another, that had, was forgotten.
func (l *lane) weigh(e *errand, a answer) answer {
	switch a.reply.Status {
	case script.Granted, script.Renewed, script.Restored:
	default:
		return a
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.node.pace.off(a.at, l.node.c.guard.longestTTL()); left > 0 {
		a.vote.Outcome, a.vote.Err = Failed, ranOff(left)
		return a
	}
	if a.reply.Quarantine > 0 && !a.at.Before(l.voted) {
		a.vote.Outcome, a.vote.Err = Failed, quarantined(a.reply.Quarantine)
		return a
	}
	if till := clock.Validity(e.begun, e.ttl, l.node.c.drift(e.ttl)); till.After(l.voted) {
		l.voted = till
	}
	return a
}

// suspect reports a key that had less time left than we had told the node. That it has more shows nothing: a renewal may
// have worked whose answer was lost. It is called with l.mu held.
func (l *lane) suspect(renewed script.Reply) {
	if renewed.Status != script.Renewed || renewed.TTL < 0 || l.keyEnd.IsZero() {
		return
	}
	now := l.node.c.clock.Now()
	due := l.keyEnd.Sub(now)
	slack := l.node.c.drift(due) + l.node.c.cfg.NodeTimeout
	if renewed.TTL >= due-slack || l.node.pace.off(now, l.node.c.guard.longestTTL()) > 0 {
		return // or the node's clock is to blame, and was reported: see pace.go
	}
	l.node.c.background.do(func() { // without the mutex
		l.node.c.log.Warn("somebody shortened a lock's TTL: is RedissonRedLock used with a lease time on its name?",
			"holder", renewed.Holder, "node", l.node.name, "left", renewed.TTL, "expected", due)
	})
}

// state tells whether the holder may be present on the node, or get there yet, and what token the node is known to store.
func (l *lane) state() (present bool, fence int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.present || l.underWay(), l.fence
}

// left tells whether the holder may be present on the node, or get there yet, and whether no other request is under way.
func (l *lane) left() (present, alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.present || l.underWay(), !l.underWay()
}

// underWay tells whether a request besides the farewell may yet reach the node. It is called with l.mu held.
func (l *lane) underWay() bool { return l.busy && (!l.waits || !l.over) }

// has tells whether the node confirmed the holder and at least this token when it was last asked. A node in quarantine
// that does is not missed, though its vote may not count yet: to ask it again soon would not make it count sooner.
func (l *lane) has(token int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed && l.fence >= token
}

// heldBy is the vote that somebody else would get who asks for the lock, if the holder has it on the node.
func (l *lane) heldBy(holder string, now clock.Instant) Vote {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.present {
		return Vote{Node: l.node.name}
	}
	return Vote{Node: l.node.name, Outcome: Held, Holder: holder, TTL: max(0, l.keyEnd.Sub(now))}
}
