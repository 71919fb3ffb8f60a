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
	lanes  []*lane
}

func (c *Coordinator) newClaim(name string) *claim {
	cl := &claim{c: c, name: name, key: c.key(name), holder: c.newHolder(), lanes: make([]*lane, len(c.nodes))}
	for i, n := range c.nodes {
		cl.lanes[i] = &lane{c: c, node: n}
	}
	return cl
}

// putAll sends the same request to all nodes and gathers the answers.
func (cl *claim) putAll(b *ballot, e errand) { cl.send(e, b.put) }

// send sends the same request to all nodes. All leave at once, and none waits for another.
func (cl *claim) send(e errand, done func(i int, a answer)) {
	e.prepared = script.Prepare(e.req)
	all := make([]errand, len(cl.lanes))
	for i, l := range cl.lanes {
		all[i] = e
		all[i].done = func(a answer) { done(i, a) }
		l.put(&all[i])
	}
}

// withdraw takes a failed attempt back on every node that granted it or may yet. It does not wait.
func (cl *claim) withdraw(t terms) {
	cl.leave(t, script.RolledBack, 0, func(int, answer) {})
}

// leave says farewell on all nodes.
func (cl *claim) leave(t terms, payload string, token int64, done func(int, answer)) {
	req := script.Release{Name: cl.key, Holder: cl.holder, Payload: payload, Token: token, TTL: t.ttl}
	cl.send(errand{req: req, begun: cl.c.clock.Now(), farewell: true, ttl: t.ttl}, done)
}

// whole tells whether every node has the holder and at least this token, by its last answer.
func (cl *claim) whole(token int64) bool {
	for _, l := range cl.lanes {
		if !l.has(token) {
			return false
		}
	}
	return true
}
