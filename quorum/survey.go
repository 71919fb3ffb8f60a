package quorum

import (
	"context"

	"github.com/redquorum/redquorum/script"
)

// survey puts a question that belongs to no holder to all nodes. Every request runs to its own end; the ballot fills
// as the answers come in.
//
// It takes effect within the node timeout or not at all.
func (c *Coordinator) survey(req script.Request) *ballot {
	b := c.newBallot()
	begun := c.clock.Now()
	until := begun.Add(c.cfg.NodeTimeout)
	for i, n := range c.nodes {
		c.background.do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
			defer cancel()
			reply, err := n.Run(ctx, req, until)
			back := c.clock.Now()
			if err == nil {
				c.watch(n, reply.Now, begun, back)
			}
			a := judge(n.name, reply, err, back.Sub(begun))
			a.at = back
			c.voted(n, req, &a)
			b.put(i, a)
		})
	}
	return b
}

// all waits until every node has answered or had its time, or ctx ended.
func (c *Coordinator) all(ctx context.Context, b *ballot) error {
	for b.count().waiting > 0 {
		select {
		case <-b.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
