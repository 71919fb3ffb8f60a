package quorum

import "github.com/redquorum/redquorum/script"

// Fencing tokens across a quorum.
//
// A fresh grant sets a node's fence to max(fence + 1, proposal), where all nodes are proposed the same number. The
// token is the highest fence among the nodes that granted, and it is accepted once a quorum of nodes that are still
// ours stores at least that much. Two quorums share a node, and there a later holder is granted more than what is
// stored: so a later holder's token is always greater. Clocks decide only how often a second round is needed, and
// bridge a counter that was lost.

// Where others of this process wait for the lock, an attempt asks for a token for each of them as well (handoff.go). A node
// sets its fence that much higher, and the tokens are the ones up to the highest fence: the lowest of them is still more
// than what any of these nodes stored before.

// agree finds the tokens. Normally all nodes were granted the proposal and nothing is sent; else the nodes that store
// less are raised, once.
func (a *attempt) agree() *verdict {
	highest, storing := a.ballot.highest()
	a.highest = highest
	if storing >= a.c.need {
		return nil
	}
	answers, _ := a.ballot.snapshot()

	raise := raising{a.c.newBallot()}
	e := &errand{
		req: script.Prepare(script.Raise{
			Name: a.claim.key, Holder: a.claim.holder, Token: a.highest, TTL: a.terms.ttl,
		}),
		until: a.end(), begun: a.c.clock.Now(), ttl: a.terms.ttl, to: raise,
	}
	for i, ans := range answers {
		switch {
		case ans.vote.Outcome == Granted && ans.reply.Fence >= a.highest:
			raise.put(i, ans)
		case ans.vote.Outcome == Granted, ans.vote.Outcome == Unknown && ans.err == nil: // granted less, or not in yet
			a.claim.putOne(i, e)
		default:
			raise.put(i, ans)
		}
	}
	for {
		t := raise.count()
		switch {
		case t.granted >= a.c.need:
			return nil
		case !t.possible(a.c.need):
			return a.fail(ErrNoQuorum)
		}
		select {
		case <-raise.changed:
		case <-a.ctx.Done():
			return a.cancelled()
		case <-a.c.closing:
			return a.fail(ErrClosed)
		}
	}
}

// raising takes the answers of those who are asked to store a higher token.
type raising struct{ *ballot }

func (r raising) put(i int, a answer) {
	if a.err == nil && a.reply.Status == script.Absent {
		a.vote.Outcome = Failed // no longer ours, whatever became of it
	}
	r.ballot.put(i, a)
}

// highest is the highest fence among the nodes that granted, and how many of them store it.
func (b *ballot) highest() (fence int64, storing int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.answers {
		a := &b.answers[i]
		switch {
		case a.vote.Outcome != Granted:
		case a.reply.Fence > fence:
			fence, storing = a.reply.Fence, 1
		case a.reply.Fence == fence:
			storing++
		}
	}
	return fence, storing
}
