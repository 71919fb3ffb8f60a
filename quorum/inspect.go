package quorum

import (
	"context"
	"fmt"
	"time"

	"github.com/redquorum/redquorum/script"
)

// A Verdict is what a quorum of nodes says about a lock.
type Verdict int

// The verdicts.
const (
	// VerdictUnknown: too few nodes answered, or neither of the others has a quorum.
	VerdictUnknown Verdict = iota
	// VerdictFree: a quorum of nodes has no holder.
	VerdictFree
	// VerdictHeld: a quorum of nodes has a holder. [State.Holder] names it, unless it has another name on each node
	// (Redisson's RedLock), or a vote is under way.
	VerdictHeld
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case VerdictUnknown:
		return "unknown"
	case VerdictFree:
		return "free"
	case VerdictHeld:
		return "held"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// State is a lock as the nodes see it.
type State struct {
	// Name is the lock's.
	Name string
	// Verdict is the quorum's.
	Verdict Verdict
	// Holder has the lock on a quorum of nodes; empty if no single one has.
	Holder string
	// HoldCount is how many holds Holder has, by most of its nodes.
	HoldCount int
	// TTL is how long it takes until so many of the nodes' TTLs have run out that others can have the lock, if nobody
	// renews it; 0 if it is free, -1 if it never will be by itself.
	TTL time.Duration
	// Token is the highest fencing token on any node that answered.
	Token int64
	// Nodes are the nodes' own views, in the order of the nodes.
	Nodes []NodeState
}

// NodeState is a lock as one node sees it.
type NodeState struct {
	// Node is the node's name.
	Node string
	// Held tells whether somebody has the lock here. A key of another type counts, without a Holder.
	Held bool
	// Holder has the lock here.
	Holder string
	// HoldCount is its hold count.
	HoldCount int
	// TTL is what the lock has left here; -1 if it never expires.
	TTL time.Duration
	// Token is the highest fencing token granted here.
	Token int64
	// Elapsed is how long the node took to answer.
	Elapsed time.Duration
	// Err is why there is no answer.
	Err error
}

// Inspect asks every node about a lock and changes nothing. It waits for all nodes, each within its node timeout. It
// fails, with what is known beside the error, if no quorum answered (ErrNoQuorum) or ctx ended.
func (c *Coordinator) Inspect(ctx context.Context, name string) (State, error) {
	if err := c.validateName(name); err != nil {
		return State{}, err
	}
	if err := c.enter(); err != nil {
		return State{}, err
	}
	defer c.leave()
	if ctx.Err() != nil {
		return State{Name: name}, c.noAnswer("inspect", name, contextErrors(ctx)...)
	}
	b := c.survey(script.Inspect{Name: c.key(name)})
	ended := c.all(ctx, b)
	answers, _ := b.snapshot()
	s := c.state(name, answers)
	if ended != nil {
		return s, c.failure("inspect", name, b, contextErrors(ctx)...)
	}
	if t := b.count(); t.blind(len(c.nodes), c.need) {
		return s, c.failure("inspect", name, b, ErrNoQuorum)
	}
	return s, nil
}

// state makes the picture from the answers.
func (c *Coordinator) state(name string, answers []answer) State {
	s := State{Name: name}
	free, held, holders, counts := 0, 0, map[string]int{}, map[int]int{}
	for _, a := range answers {
		n := NodeState{Node: a.vote.Node, Elapsed: a.vote.Elapsed, Err: a.vote.Err}
		switch a.reply.Status {
		case script.Absent:
			free++
		case script.Held:
			held++
			n.Held, n.Holder, n.HoldCount, n.TTL = true, a.reply.Holder, a.reply.Count, a.reply.TTL
			if n.Holder != "" {
				holders[n.Holder]++
			}
		}
		n.Token = a.reply.Fence
		s.Token = max(s.Token, n.Token)
		s.Nodes = append(s.Nodes, n)
	}
	switch {
	case free >= c.need:
		s.Verdict = VerdictFree
		return s
	case held >= c.need:
		s.Verdict = VerdictHeld
	}
	var votes []Vote
	for _, a := range answers {
		v := a.vote
		votes = append(votes, v)
		if holders[v.Holder] >= c.need {
			s.Holder = v.Holder
			counts[a.reply.Count]++
		}
	}
	for count, n := range counts {
		if n > counts[s.HoldCount] || s.HoldCount == 0 {
			s.HoldCount = count
		}
	}
	if s.Verdict == VerdictHeld {
		if s.TTL = retryAfter(votes, c.need); s.TTL == 0 {
			s.TTL = script.NoExpiry
		}
	}
	return s
}
