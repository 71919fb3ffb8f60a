package quorum

import (
	"time"

	"github.com/redquorum/redquorum/script"
)

// longestPause is the longest time between two tries to take something back from a node: how soon after it wakes a
// hung node is clean.
const longestPause = 500 * time.Millisecond

// bid ends a lane: the holder shall not be on this node any more. It is the release of a lease and the rollback of a failed
// attempt, and belongs to no caller's context.
//
// It sends the farewell until the node has answered that the holder is gone after the last moment of every request
// that might still be on its way, or until the TTL has passed, and the key with it.
//
// "Gone" alone is not enough: a server that was stopped with our request in its socket runs a release that came on
// another connection first, and the request after it. Nor is "gone" twice.
func (l *lane) bid(e *errand) {
	req := e.req.(script.Release)
	present, fence := l.state()
	if !present && fence >= req.Token {
		// Nothing of ours can be there, and the node knows the token: there is nothing to say.
		e.done(judge(l.node.name, script.Reply{Status: script.Absent}, nil, 0))
		return
	}
	giveUp := l.c.clock.Now().Add(l.c.cfg.NodeTimeout).Add(req.TTL)
	pause := min(10*time.Millisecond, longestPause)
	for first := true; ; first = false {
		a := l.send(e)
		l.learn(e, a)
		if first {
			l.c.voted(l.node, e.req, &a)
			e.done(a)
		} else {
			l.c.heard(l.node, &a)
		}
		present, _ = l.state()
		if !present || !l.c.clock.Now().Before(giveUp) {
			return
		}
		if !l.c.rest(pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}
