package quorum

import (
	"strings"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// Split votes.
//
// When several clients try at once, each may get some nodes and none a quorum. Then the lock is not held, and if all
// of them gave up, nobody would have it. So one of them stays. The held replies name the holders, and all contenders
// see much the same picture: the one that has the most nodes, and of several such the one with the smallest holder,
// leads. It keeps its grants and asks the other nodes again; the others withdraw at once and come back after a random
// delay. When their views differ, because a node is slow or down, two may lead for a while; so leading is bounded too.
//
// "Somebody else has a quorum" ends a try, so it has to be true. The answers of one round were given at different
// moments: a rival that seems to have nodes 2 and 3 may have left 2 before it got 3. Then it says "not acquired" of us
// for the same reason, and nobody wins. Who asks a second time, and finds the same holder there still, has seen it in
// both places at one moment, since a holder that withdrew never returns. Of all who give up for such a reason, each saw
// a quorum that came after any of its own; so there is a last one, and it does not give up.
type splitVote struct {
	attempt *attempt

	timer   *time.Timer
	overdue bool          // the nodes that have not answered are not waited for any longer
	until   clock.Instant // when leading ends; zero before the vote was found split

	rival  string       // seems to have a quorum
	second map[int]bool // nodes that were asked a second time since
}

// Leading lasts for some round trips: the others withdraw within one, and our next question finds the node free. The
// bounds keep a fast network from making it too short for a scheduler, and a slow one from holding up everybody.
const (
	leadTrips = 8
	leadLeast = 5 * time.Millisecond
)

// expect limits the wait for nodes that may never answer, once a rival was seen: how the vote stands can be told from
// the others.
func (s *splitVote) expect() {
	if s.timer != nil {
		return
	}
	a := s.attempt
	var longest time.Duration
	for _, i := range a.ballot.missing() {
		longest = max(longest, a.c.nodes[i].patience(a.c.cfg.NodeTimeout))
	}
	s.rearm(longest)
}

// alarm is the timer's channel; nil if there is none.
func (s *splitVote) alarm() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

func (s *splitVote) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// resolve decides what to do about a vote that this contender may not win as it stands: go on (nil), or the verdict.
func (s *splitVote) resolve() *verdict {
	a := s.attempt
	overdue := s.overdue
	s.overdue = false
	st := a.standing()
	switch {
	case st.blocked > len(a.c.nodes)-a.c.need:
		return a.fail(ErrNotAcquired) // keys of another type, which will not withdraw
	case len(st.nodes) >= a.c.need && (st.unanimous || s.confirmed(st)):
		return a.fail(ErrNotAcquired)
	case st.waiting > 0 && !overdue:
		s.expect() // the rest may tell how the vote stands, or make a second question unnecessary
		return nil
	case len(st.nodes) >= a.c.need && s.rival != st.rival:
		s.askRival(st)
		return nil
	case !s.lead(st):
		v := a.fail()
		v.classes = []error{a.c.classify(v.votes)}
		v.split = true
		return v
	}
	if overdue {
		for i, v := range a.ballot.votes() {
			if v.Outcome == Held {
				a.askAgain(i)
			}
		}
	}
	// Half a round trip later a rival that withdraws at once will have.
	s.rearm(a.roundTrip() / 2)
	return nil
}

// lead tells whether this contender keeps its grants and goes on.
func (s *splitVote) lead(st standing) bool {
	a := s.attempt
	now := a.c.clock.Now()
	if s.until.IsZero() {
		lead := min(max(leadTrips*a.roundTrip(), leadLeast), a.c.cfg.NodeTimeout)
		s.until = clock.Earlier(now.Add(lead), a.end())
	}
	return st.leads && now.Before(s.until)
}

// askRival asks the nodes of a rival who seems to have a quorum a second time.
func (s *splitVote) askRival(st standing) {
	s.rival, s.second = st.rival, map[int]bool{}
	for _, i := range st.nodes {
		s.second[i] = true
		s.attempt.askAgain(i)
	}
	s.rearm(2 * s.attempt.roundTrip())
}

// confirmed tells whether the rival was found a second time on a quorum of nodes.
func (s *splitVote) confirmed(st standing) bool {
	n := 0
	for _, i := range st.nodes {
		if s.second[i] {
			n++
		}
	}
	return s.rival == st.rival && n >= s.attempt.c.need
}

func (s *splitVote) rearm(d time.Duration) {
	s.stop()
	s.timer = time.NewTimer(max(200*time.Microsecond, d))
}

// askAgain asks a node once more that has answered.
func (a *attempt) askAgain(i int) {
	a.ballot.reopen(i)
	e := a.request()
	e.begun = a.c.clock.Now()
	a.claim.putOne(i, e)
}

// standing is how the vote looks at a moment.
type standing struct {
	leads     bool   // this contender
	rival     string // the strongest other one
	nodes     []int  // where the rival is
	blocked   int    // nodes with a key of another type
	waiting   int    // nodes that have not answered
	unanimous bool   // every node that is up has the rival, and all have answered
}

// standing reads the vote.
func (a *attempt) standing() standing {
	answers, waiting := a.ballot.snapshot()
	mine, blocked := 0, 0
	rivals := map[string][]int{}
	for i, ans := range answers {
		switch {
		case ans.vote.Outcome == Granted:
			mine++
		case ans.vote.Outcome == Held && ans.vote.Holder == "":
			blocked++
		case ans.vote.Outcome == Held:
			rivals[ans.vote.Holder] = append(rivals[ans.vote.Holder], i)
		}
	}
	st := standing{leads: mine > 0, blocked: blocked, waiting: waiting}
	st.unanimous = mine == 0 && len(rivals) == 1 && blocked == 0 && waiting == 0
	for holder, nodes := range rivals {
		if n := len(nodes); n > len(st.nodes) || (n == len(st.nodes) && holder < st.rival) {
			st.rival, st.nodes = holder, nodes
		}
	}
	if n := len(st.nodes); n > mine || (n == mine && st.rival < a.claim.holder) {
		st.leads = false
	}
	return st
}

// roundTrip is how long the slowest node took that has answered, to any question of this attempt.
func (a *attempt) roundTrip() time.Duration { return a.ballot.longest() }

// comeBack is how long a contender that withdrew stays away: at least as long as the leader needs to ask again, at
// random so that those who withdrew together do not return together, and longer every time, since there are more of
// them than was thought. Never much longer than the poll: with a slow node in the round trip the sum would leave a free
// lock alone for half a minute.
func comeBack(roundTrip, nodeTimeout time.Duration, round int, random func() float64) time.Duration {
	unit := min(max(roundTrip, 500*time.Microsecond), nodeTimeout)
	spread := float64(int(2) << min(round, 10))
	return unit + min(time.Duration(random()*spread*float64(unit)), max(pollHeld, 4*unit))
}

// rivals is how many contenders there were besides the first other one, as far as the nodes show.
func rivals(votes []Vote) int {
	seen := map[string]bool{}
	for _, v := range votes {
		if v.Outcome == Held {
			seen[v.Holder] = true
		}
	}
	return max(0, len(seen)-1)
}

// stalemate notices that a split vote is none: the same holders on the same nodes for so long that nobody of them can
// be about to win or to withdraw. Redisson's RedLock, for one, uses another holder on each node.
type stalemate struct {
	picture string
	since   clock.Instant
}

// settled takes in a verdict and tells whether the picture has been the same for two node timeouts.
func (s *stalemate) settled(c *Coordinator, v *verdict) bool {
	var held strings.Builder
	for _, vote := range v.votes {
		if vote.Outcome == Held {
			held.WriteString(vote.Holder)
		}
		held.WriteByte('|')
	}
	now := c.clock.Now()
	if picture := held.String(); picture != s.picture || s.since.IsZero() {
		s.picture, s.since = picture, now
	}
	return now.Sub(s.since) >= 2*c.cfg.NodeTimeout
}
