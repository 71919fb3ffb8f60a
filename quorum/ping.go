package quorum

import (
	"context"

	"github.com/google/uuid"

	"github.com/redquorum/redquorum/script"
)

// Ping checks at start-up that a quorum of nodes can do what locks need: reachable, credentials and permissions right,
// writable, masters, and not one server under two addresses (ErrSameServer). On each node it runs every command the locks
// use on a scratch key, which is gone afterwards. It returns a *QuorumError (ErrNoQuorum, with every node's word, or ctx's
// error) if fewer can; nodes beyond the quorum that cannot are logged.
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
	b := c.survey(script.Probe{Name: name})
	if c.all(ctx, b) != nil {
		return c.failure(op, name, b, contextErrors(ctx)...)
	}
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
