package quorum

import (
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Split votes.
//
// When several clients try at once, each may get some nodes and none a quorum. Then the lock is not held, and if all
// of them gave up, nobody would have it. So one of them stays. The held replies name the holders, and all contenders
// see much the same picture: the one that has the most nodes, and of several such the one with the smallest holder,
// leads. It keeps its grants and asks the other nodes again; the others withdraw at once and come back after a random
// delay. When their views differ, because a node is slow or down, two may lead for a while; so leading is bounded too.
type splitVote struct {
	attempt *attempt

	timer   *time.Timer
	overdue bool          // the nodes that have not answered are not waited for any longer
	until   clock.Instant // when leading ends; zero while not leading
}

// Leading lasts for some round trips: the others withdraw within one, and our next question finds the node free. The
// bounds keep a fast network from making it too short for a scheduler, and a slow one from holding up everybody.
const (
	leadTrips = 8
	leadLeast = 5 * time.Millisecond
)

// expect limits the wait for nodes that may never answer, once a rival was seen: whether this contender leads can be
// told from the others.
func (s *splitVote) expect() {
	if s.timer == nil {
		s.timer = time.NewTimer(max(time.Millisecond, 4*s.attempt.roundTrip()))
	}
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

// resolve decides what to do about a vote that nobody of us may win as it stands: go on (nil), or the verdict.
func (s *splitVote) resolve(t tally) *verdict {
	a := s.attempt
	most, leads := standing(a)
	if most >= a.c.need {
		return a.fail(ErrNotAcquired) // somebody has it
	}
	now := a.c.clock.Now()
	if s.until.IsZero() {
		lead := min(max(leadTrips*a.roundTrip(), leadLeast), a.c.cfg.NodeTimeout)
		s.until = clock.Earlier(now.Add(lead), a.end())
	}
	if !leads || !now.Before(s.until) {
		v := a.fail(ErrNotAcquired)
		v.split = true
		return v
	}
	s.again()
	return nil
}

// again asks the nodes that others held once more, half a round trip later: by then a rival that withdraws will have.
func (s *splitVote) again() {
	s.stop()
	a := s.attempt
	if s.overdue {
		s.overdue = false
		answers, _ := a.ballot.snapshot()
		for i, ans := range answers {
			if ans.vote.Outcome != Held {
				continue
			}
			a.ballot.reopen(i)
			a.claim.lanes[i].put(&errand{
				req: script.Acquire{
					Name: a.claim.name, Holder: a.claim.holder, Count: 1, TTL: a.terms.ttl,
					Proposal: a.c.clock.Wall().UnixMicro(), Clamp: a.terms.ttl / 4,
				},
				until: a.end(), begun: a.c.clock.Now(), ttl: a.terms.ttl,
				done: func(ans answer) { a.ballot.put(i, ans) },
			})
		}
	}
	s.timer = time.NewTimer(max(200*time.Microsecond, a.roundTrip()/2))
}

// standing counts the nodes of the strongest rival and tells whether this contender leads.
func standing(a *attempt) (most int, leads bool) {
	answers, _ := a.ballot.snapshot()
	mine, blocked := 0, 0
	rivals := map[string]int{}
	for _, ans := range answers {
		switch {
		case ans.vote.Outcome == Granted:
			mine++
		case ans.vote.Outcome == Held && ans.vote.Holder == "":
			blocked++ // a key of another type will not withdraw
		case ans.vote.Outcome == Held:
			rivals[ans.vote.Holder]++
		}
	}
	if blocked > len(answers)-a.c.need {
		return len(answers), false
	}
	leads = mine > 0
	for holder, n := range rivals {
		most = max(most, n)
		if n > mine || (n == mine && holder < a.claim.holder) {
			leads = false
		}
	}
	return most, leads
}

// roundTrip is how long the slowest node took that has answered.
func (a *attempt) roundTrip() time.Duration {
	var longest time.Duration
	for _, v := range a.ballot.votes() {
		longest = max(longest, v.Elapsed)
	}
	return longest
}

// comeBack is how long a contender that withdrew stays away: at least as long as the leader needs to ask again, at
// random so that those who withdrew together do not return together, and longer every time, since there are more of
// them than was thought.
func comeBack(roundTrip, nodeTimeout time.Duration, round int, random func() float64) time.Duration {
	unit := min(max(roundTrip, 500*time.Microsecond), nodeTimeout)
	spread := float64(int(2) << min(round, 5))
	return unit + time.Duration(random()*spread*float64(unit))
}

// picture is who held which nodes in a verdict. One that does not change from one visit to the next is no vote under
// way but a hold that is settled, under several names: Redisson's RedLock uses another one on each node.
func picture(votes []Vote) string {
	var held []byte
	for _, v := range votes {
		if v.Outcome == Held {
			held = append(append(held, v.Holder...), '|')
		} else {
			held = append(held, '-', '|')
		}
	}
	return string(held)
}
