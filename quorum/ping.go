package quorum

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// Ping checks at start-up that a quorum of nodes can do what locks need: reachable, credentials and permissions right,
// writable, masters, and not one server under two addresses (ErrSameServer). On each node it runs every command the locks
// use on a scratch key, which is gone afterwards, and listens for a moment to its channel. It returns a *QuorumError
// (ErrNoQuorum, with every node's word, or ctx's error) if fewer can; nodes beyond the quorum that cannot are logged. What
// a node does not permit, the error names: a command, a key or a channel (see [ACL]).
func (c *Coordinator) Ping(ctx context.Context) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	const op = "ping"
	name := "redquorum_ping:" + uuid.NewString()
	if ctx.Err() != nil {
		return c.noAnswer(op, name, contextErrors(ctx)...)
	}
	b := c.survey(script.Probe{Name: c.key(name)})
	if c.all(ctx, b) != nil {
		return c.failure(op, name, b, contextErrors(ctx)...)
	}
	c.permitted(ctx, name, b)
	c.guard.distinguish(ctx)
	if c.sameServer.Load() {
		return c.failure(op, name, b, ErrSameServer)
	}
	if !c.cfg.NoRestartGuard {
		c.guard.decided(ctx) // so that the first lock need not wait for it
	}
	if ctx.Err() != nil {
		return c.failure(op, name, b, contextErrors(ctx)...)
	}
	if b.count().granted < c.need {
		return c.failure(op, name, b, ErrNoQuorum)
	}
	for _, v := range b.votes() {
		if v.Err != nil {
			c.log.Warn("node failed the start-up check", "node", v.Node, "error", v.Err)
		}
	}
	return nil
}

// permitted asks the nodes that have answered for what no script can try. What a node refuses then is its vote.
func (c *Coordinator) permitted(ctx context.Context, name string, b *ballot) {
	keys, channel := script.Prepare(script.Probe{Name: c.key(name)}).Keys(), script.Channel(c.key(name))
	begun := c.clock.Now()
	answers, _ := b.snapshot()
	var wait sync.WaitGroup
	for i, a := range answers {
		if a.err != nil && !node.Refused(a.err) {
			continue
		}
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, c.cfg.NodeTimeout)
			defer cancel()
			// A node that has just answered and does not now is one that is slow.
			if err := c.nodes[i].Permitted(ctx, keys, channel); node.Refused(err) {
				b.put(i, judge(a.vote.Node, script.Reply{}, err, c.clock.Now().Sub(begun)))
			}
		})
	}
	wait.Wait()
}
