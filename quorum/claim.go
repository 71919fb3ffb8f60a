package quorum

import "github.com/redquorum/redquorum/script"

// A claim is one holder's requests for one lock on all nodes.
//
// Every attempt at a first hold is a new claim with a holder that was never used before. With one holder for several
// attempts, the overtaken rollback of the first would delete the grant of the second.
type claim struct {
	c      *Coordinator
	name   string
	key    string // what the nodes know it by
	holder string
	lanes  []lane
}

func (c *Coordinator) newClaim(name string) *claim {
	cl := &claim{c: c, name: name, key: c.key(name), holder: c.newHolder(), lanes: make([]lane, len(c.nodes))}
	for i, n := range c.nodes {
		cl.lanes[i].node = n
	}
	return cl
}

// put sends the same request, which was begun just now, to all nodes. All leave at once, and none waits for another.
func (cl *claim) put(e *errand) {
	tries := make([]try, len(cl.lanes))
	for i := range cl.lanes {
		t := &tries[i]
		t.lane, t.errand, t.asked = &cl.lanes[i], e, e.begun
		t.lane.put(t)
	}
}

// putOne sends a request to one node.
func (cl *claim) putOne(i int, e *errand) {
	l := &cl.lanes[i]
	l.put(&try{lane: l, errand: e, asked: e.begun})
}

// withdraw takes a failed attempt back on every node that granted it or may yet. It does not wait.
func (cl *claim) withdraw(t terms) { cl.leave(t, script.RolledBack, 0, nobody{}) }

// leave says farewell on all nodes.
func (cl *claim) leave(t terms, payload string, token int64, to receiver) {
	req := script.Release{Name: cl.key, Holder: cl.holder, Payload: payload, Token: token, TTL: t.ttl}
	cl.put(&errand{req: script.Prepare(req), begun: cl.c.clock.Now(), farewell: true, ttl: t.ttl, to: to})
}

// nobody wants to know.
type nobody struct{}

func (nobody) put(int, answer) {}

// whole tells whether every node has the holder and at least this token, by its last answer.
func (cl *claim) whole(token int64) bool {
	for i := range cl.lanes {
		if !cl.lanes[i].has(token) {
			return false
		}
	}
	return true
}
