package quorum

import (
	"context"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// A verdict is how an attempt ended that did not get the lock.
type verdict struct {
	// classes are what the error shall match; for a split vote, what it shall match if nothing better comes of it.
	classes []error
	// split: no single holder has a quorum, so "not acquired" would be wrong.
	split  bool
	votes  []Vote
	ballot *ballot // for answers that come later
	// roundTrip is how long the nodes took, for delays that scale with it.
	roundTrip time.Duration
}

// attempt tries once to get the lock for a fresh holder. Either it returns the lock, held and fenced, or the attempt
// has been withdrawn, in the background, wherever it may have left something.
//
// The hold can be handed on in this process as often as more says.
func (c *Coordinator) attempt(ctx context.Context, name string, t terms, more int) (*Lease, *verdict) {
	c.guard.warnOfLong(t.ttl)
	a := &attempt{c: c, ctx: ctx, terms: t, more: int64(more), claim: c.newClaim(name), ballot: c.newBallot()}
	if c.guard.attempting(t.ttl) {
		// Until every node has answered, or the last moment of what it was asked has passed.
		defer func() { a.ballot.whenComplete(func() { c.guard.attempted(t.ttl) }) }()
	}
	a.start = c.clock.Now() // before the first send: validity counts from here
	a.proposal = c.clock.Wall().UnixMicro()
	a.claim.put(a.request())
	v := a.poll()
	if v == nil {
		v = a.fence()
	}
	if v == nil {
		if l, ok := c.newHold(a); ok {
			c.guard.grant(t.ttl)
			return l, nil
		}
		v = a.fail(ErrClosed)
	}
	a.claim.withdraw(t)
	return nil, v
}

// attempt is one try at a first hold, under way.
type attempt struct {
	c      *Coordinator
	ctx    context.Context
	terms  terms
	claim  *claim
	ballot *ballot
	start  clock.Instant

	proposal int64 // the token proposed: one for all nodes and all questions, so that they agree
	more     int64 // how many tokens are asked for besides
	highest  int64 // the highest of those agreed upon
}

// maxClamp is how far a proposed token may be from a node's clock at most. A node that lost its counter goes on from its
// clock, when it has been in quarantine: later than any token by more than the quarantine, less what the proposals may be
// off, of that client and of this one. So their clamps together have to be less than any quarantine that there has been,
// whatever TTL is in use by now. A client whose clock is further off than that needs a second round for its tokens.
const maxClamp = time.Second

// request is what every node is asked.
func (a *attempt) request() *errand {
	return &errand{
		req: script.Prepare(script.Acquire{
			Name: a.claim.key, Holder: a.claim.holder, Count: 1, TTL: a.terms.ttl,
			Proposal: a.proposal, Clamp: min(a.terms.ttl/4, maxClamp), More: a.more,
		}),
		until: a.end(), begun: a.start, ttl: a.terms.ttl, to: a.ballot,
	}
}

// end is when the lease ends that this attempt may get.
func (a *attempt) end() clock.Instant {
	return clock.Validity(a.start, a.terms.ttl, a.c.drift(a.terms.ttl))
}

// poll waits for a quorum of grants, or for the certainty that there will be none. A failure is final: a grant that
// comes after it is rolled back like the others.
func (a *attempt) poll() *verdict {
	need, n := a.c.need, len(a.c.nodes)
	split := splitVote{attempt: a}
	defer split.stop()
	for {
		t := a.ballot.count()
		switch {
		case a.c.sameServer.Load():
			a.c.guard.reconnect()
			return a.fail(ErrSameServer)
		case t.revoked: // one such answer is enough, as in a renewal
			return a.fail(ErrNotAcquired)
		case t.granted >= need:
			return nil
		case t.blind(n, need):
			return a.fail(ErrNoQuorum)
		case t.held > 0 && (!t.possible(need) || split.overdue):
			if v := split.resolve(); v != nil {
				return v
			}
		case t.held > 0:
			split.expect()
		}
		select {
		case <-a.ballot.changed:
		case <-split.alarm():
			split.overdue = true
		case <-a.ctx.Done():
			return a.cancelled()
		case <-a.c.closing:
			return a.fail(ErrClosed)
		}
	}
}

// fence agrees on a token, and checks that the grant came in time.
func (a *attempt) fence() *verdict {
	if v := a.agree(); v != nil {
		return v
	}
	if !a.c.clock.Now().Before(a.end()) {
		return a.fail(ErrNoQuorum)
	}
	return nil
}

// fail makes the verdict of an attempt, from the votes that are in.
func (a *attempt) fail(classes ...error) *verdict {
	return &verdict{classes: classes, votes: a.ballot.votes(), ballot: a.ballot, roundTrip: a.roundTrip()}
}

// incurable tells whether more votes than a quorum can do without are errors that waiting cannot cure.
func (c *Coordinator) incurable(votes []Vote) bool {
	permanent := 0
	for _, vote := range votes {
		if node.Permanent(vote.Err) {
			permanent++
		}
	}
	return permanent > len(votes)-c.need
}

// cancelled is the verdict when the caller's context ended. It matches that context's error and cause only: whether
// the lock could have been had, nobody knows.
func (a *attempt) cancelled() *verdict {
	return a.fail(contextErrors(a.ctx)...)
}

// contextErrors returns a finished context's error, and its cause if that is another one.
func contextErrors(ctx context.Context) []error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err { //nolint:errorlint // whether they are one and the same
		return []error{err}
	}
	return []error{err, cause}
}
