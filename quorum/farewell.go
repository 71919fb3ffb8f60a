package quorum

import (
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// longestPause is the longest time between two tries to take something back from a node: how soon after it wakes a
// hung node is clean. shortestPause is the first one.
const (
	longestPause  = 500 * time.Millisecond
	shortestPause = 10 * time.Millisecond
)

// part begins the farewell of a lane: the holder shall not be on this node any more. It is the release of a lease and the
// rollback of a failed attempt, and belongs to no caller's context. It returns false if there is nothing to say.
func (l *lane) part(t *try) bool {
	req := t.errand.req.Request.(script.Release)
	present, fence := l.state()
	if !present && fence >= req.Token {
		// Nothing of ours can be there, and the node knows the token.
		t.errand.to.put(l.node.i, judge(l.node.name, script.Reply{Status: script.Absent}, nil, 0))
		l.node.c.errands.Done()
		return false
	}
	t.giveUp = t.asked.Add(l.node.c.cfg.NodeTimeout).Add(req.TTL)
	t.pause = shortestPause
	return true
}

// bid takes in the answer to a farewell, which is repeated until the node has answered that the holder is gone after the
// last moment of every request that might still be on its way, or until the TTL has passed, and the key with it. An answer
// that came before that of a request under way is told nobody, unless it is the last one.
//
// "Gone" alone is not enough: a server that was stopped with our request in its socket runs a release that came on
// another connection first, and the request after it. Nor is "gone" twice.
func (l *lane) bid(t *try, a answer) {
	l.learn(t.errand, a)
	present, alone := l.left()
	over := !present || !l.node.c.clock.Now().Before(t.giveUp)
	if !t.told && (alone || over) {
		t.told = true
		l.node.c.voted(l.node, t.errand.req.Request, &a)
		t.errand.to.put(l.node.i, a)
	} else {
		l.node.c.heard(l.node, &a)
	}
	if over {
		l.node.c.errands.Done()
		return
	}
	l.bidAgain(t, a)
}

// lastWord is what is told of a farewell that is not repeated any more. "Gone" was true when the node said so; what was under
// way then may have put the holder back.
func (l *lane) lastWord(a answer) answer {
	if present, _ := l.left(); !present || a.err != nil {
		return a
	}
	return judge(l.node.name, script.Reply{}, &node.Error{Node: l.node.name, Sent: true, Err: node.ErrTimeout}, a.vote.Elapsed)
}

// bidAgain repeats a farewell after a pause.
func (l *lane) bidAgain(t *try, a answer) {
	l.node.c.background.do(func() {
		if l.node.c.rest(t.pause) {
			again := t.again()
			again.pause = min(2*t.pause, longestPause)
			l.send(again)
			return
		}
		if !t.told { // whoever waits for it shall not wait for ever
			t.errand.to.put(l.node.i, l.lastWord(a))
		}
		l.node.c.errands.Done()
	})
}
