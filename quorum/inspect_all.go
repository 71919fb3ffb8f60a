package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// inspectedAtOnce is how many locks a node is asked about at a time. They share round trips; many more would wait for each
// other for longer than a node timeout, on a machine that is busy.
const inspectedAtOnce = 64

// InspectAll is [Coordinator.Inspect] of many locks, in their order; it is for lists. A node that does not answer in time is
// asked about no further locks, and has the same error in all of their states, so that it costs a node timeout and not one a
// lock.
//
// It fails, with the states beside the error, if of some lock no quorum of nodes answered (ErrNoQuorum, with the votes of the
// first such lock). If ctx ended, or the coordinator was closed, there are no states.
func (c *Coordinator) InspectAll(ctx context.Context, names []string) ([]State, error) {
	for _, name := range names {
		if err := c.validateName(name); err != nil {
			return nil, err
		}
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	ballots := make([]*ballot, len(names))
	for i := range names {
		ballots[i] = c.newBallot()
	}
	var nodes sync.WaitGroup
	for i, n := range c.nodes {
		nodes.Go(func() { c.inspectOn(ctx, i, n, names, ballots) })
	}
	nodes.Wait()
	if len(names) == 0 {
		return nil, nil
	}
	select {
	case <-c.closing:
		return nil, ErrClosed
	default:
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // at this moment: a connection keeps to the same deadline, and may be the first to notice
	}
	if ctx.Err() != nil {
		return nil, c.noAnswer("inspect", names[0], contextErrors(ctx)...)
	}
	states := make([]State, len(names))
	var err error
	for i, b := range ballots {
		answers, _ := b.snapshot()
		states[i] = c.state(names[i], answers)
		if t := b.count(); err == nil && t.blind(len(c.nodes), c.need) {
			err = c.failure("inspect", names[i], b, ErrNoQuorum)
		}
	}
	return states, err
}

// inspectOn asks one node about all locks.
func (c *Coordinator) inspectOn(ctx context.Context, i int, n *voter, names []string, ballots []*ballot) {
	for len(names) > 0 {
		select {
		case <-c.closing:
			return
		case <-ctx.Done():
			return
		default:
		}
		some := min(inspectedAtOnce, len(names))
		answers := make([]answer, some)
		var asked sync.WaitGroup
		for j, name := range names[:some] {
			asked.Go(func() { answers[j] = c.inspectOne(ctx, n, name) })
		}
		asked.Wait()
		var silent error // why it is asked no more
		for _, a := range answers {
			// What it refuses may be one lock. Those that waited for the others have less to tell than those.
			if a.err != nil && !node.Refused(a.err) && (silent == nil || errors.Is(a.err, node.ErrTimeout)) {
				silent = a.err
			}
		}
		for j, a := range answers {
			if a.err != nil && !node.Refused(a.err) {
				a = judge(n.name, script.Reply{}, silent, a.vote.Elapsed)
			}
			ballots[j].put(i, a)
		}
		names, ballots = names[some:], ballots[some:]
		if silent != nil {
			for _, b := range ballots {
				b.put(i, judge(n.name, script.Reply{}, silent, 0))
			}
			return
		}
	}
}

// inspectOne asks one node about one lock.
func (c *Coordinator) inspectOne(ctx context.Context, n *voter, name string) answer {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.NodeTimeout)
	defer cancel()
	begun := c.clock.Now()
	reply, err := n.Run(ctx, script.Inspect{Name: c.key(name)}, begun.Add(c.cfg.NodeTimeout))
	back := c.clock.Now()
	if err == nil {
		c.watch(n, reply.Now, begun, back)
	}
	return judge(n.name, reply, err, back.Sub(begun))
}
