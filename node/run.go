package node

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Run runs one script. until is the last moment at which it may take effect; the zero Instant means any. The call ends
// at ctx's deadline; a cancellation ends it only while nothing was sent. An error is an [*Error].
//
// A script the node does not know is sent with its source in the same call. A request that the node found too late
// although there was time left (the node's clock was set forward since the last reply) is repeated once: the refusal
// taught us the new time, and proved that nothing had happened.
func (n *Node) Run(ctx context.Context, req script.Request, until clock.Instant) (script.Reply, error) {
	reply, err := n.runOnce(ctx, req, until)
	if err == nil && reply.Status == script.Expired && n.clock.Now().Before(until) {
		reply, err = n.runOnce(ctx, req, until)
	}
	return reply, err
}

func (n *Node) runOnce(ctx context.Context, req script.Request, until clock.Instant) (script.Reply, error) {
	if n.closed.Load() {
		return script.Reply{}, &Error{Node: n.name, Err: ErrClosed}
	}
	call := &call{Cmd: redis.NewCmd(ctx), node: n, req: req, until: until, by: "EVALSHA", text: req.Script().SHA}
	err := n.client.Process(ctx, call)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		call.Cmd = redis.NewCmd(ctx)
		call.by, call.text, call.written = "EVAL", req.Script().Source, false
		err = n.client.Process(ctx, call)
	}
	if err != nil {
		return script.Reply{}, n.wrap(err, call)
	}
	received := n.clock.Now()
	reply, err := script.ParseReply(call.Val())
	if err != nil {
		return script.Reply{}, n.wrap(errors.Join(errOdd, err), call)
	}
	n.offset.learn(reply.Now, call.sent, received)
	return reply, nil
}

var errOdd = errors.New("unexpected answer")

// call is a script on its way to the node.
//
// go-redis asks a command for its arguments at the moment it writes them to a connection that is ready. That moment
// tells two things which nothing else does: that the request was sent at all, and, on a connection that was just made,
// the offset of the node's clock, learnt in the handshake.
type call struct {
	*redis.Cmd

	node     *Node
	req      script.Request
	until    clock.Instant
	by, text string

	written bool
	sent    clock.Instant
	last    int64
}

// Args returns the command and its arguments.
func (c *call) Args() []any {
	c.written = true
	c.sent = c.node.clock.Now()

	if !c.until.IsZero() {
		c.last, _ = c.node.offset.nodeTime(c.until)
	}
	keys := c.req.Keys()
	args := []any{c.by, c.text, len(keys)}
	for _, key := range keys {
		args = append(args, key)
	}
	return append(args, c.req.Args(c.last)...)
}
