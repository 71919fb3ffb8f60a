package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Run runs one script. until is the last moment at which it may take effect; the zero Instant means any. The call ends
// at ctx's deadline; a cancellation ends it only while nothing was sent. An error is an [*Error].
//
// Whoever asks several nodes the same may prepare it once ([script.Prepare]).
//
// A script the node does not know is sent with its source in the same call. A request that the node refused untouched is
// repeated once, if there is time left: one that the node found too late (its clock was set forward since the last
// reply; the refusal taught us the new time), and one that found another incarnation of the node than the one that was
// checked (it was flushed, say), after a new check.
func (n *Node) Run(ctx context.Context, req script.Request, until clock.Instant) (script.Reply, error) {
	reply, err := n.runOnce(ctx, req, until)
	if err != nil || reply.Status != script.Stranger && reply.Status != script.Expired {
		return reply, err
	}
	if !until.IsZero() && !n.clock.Now().Before(until) {
		return reply, nil
	}
	if reply.Status == script.Stranger {
		if _, err := n.Check(ctx); err != nil {
			return script.Reply{}, err
		}
	}
	return n.runOnce(ctx, req, until)
}

func (n *Node) runOnce(ctx context.Context, req script.Request, until clock.Instant) (script.Reply, error) {
	if n.closed.Load() {
		return script.Reply{}, &Error{Node: n.name, Err: ErrClosed}
	}
	if n.guard.on && n.guard.doubt.Load() {
		if _, err := n.Check(ctx); err != nil {
			return script.Reply{}, err
		}
	}
	call := n.newCall(ctx, req, until)
	err := n.queue.run(ctx, call)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		// Either nobody has sent this script yet, or the server forgot it, and then perhaps more than that.
		if n.guard.on {
			if _, err := n.Check(ctx); err != nil {
				return script.Reply{}, err
			}
		}
		call.withSource(ctx)
		err = n.queue.run(ctx, call)
	}
	if err != nil {
		if unsure(err) {
			n.guard.doubt.Store(true)
		}
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
	req      *script.Prepared
	until    clock.Instant
	seal     script.Seal
	bySource bool // the server does not know the script's name

	writing sync.Mutex // held while written and left are decided on
	left    bool       // nobody waits for it any more: what is written yet must do nothing
	written atomic.Bool
	sent    clock.Instant
	last    atomic.Int64

	// While it waits in the queue of the node.
	ctx     context.Context
	turn    chan bool // receives true when it is to lead a batch, false when it has come back from one
	batch   []*call   // what it leads, itself included
	outcome error
}

func (n *Node) newCall(ctx context.Context, req script.Request, until clock.Instant) *call {
	prepared, ok := req.(*script.Prepared)
	if !ok {
		prepared = script.Prepare(req)
	}
	return &call{Cmd: redis.NewCmd(ctx), node: n, req: prepared, until: until}
}

// withSource makes the call carry its source, for a server that does not know the script's name.
func (c *call) withSource(ctx context.Context) {
	c.Cmd = redis.NewCmd(ctx)
	c.bySource = true
	c.written.Store(false)
}

// leave makes what has not been written yet do nothing. One without a last moment would do it all the same, so it counts as
// written.
func (c *call) leave() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.left = true
	if c.until.IsZero() {
		c.written.Store(true)
	}
}

// gone tells whether nobody waits for the call any more.
func (c *call) gone() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.left
}

// Args returns the command and its arguments.
func (c *call) Args() []any {
	c.sent = c.node.clock.Now()
	last := int64(0)
	if !c.until.IsZero() {
		last, _ = c.node.offset.nodeTime(c.until)
	}
	c.writing.Lock()
	if c.left {
		last = 1 // long ago
	} else {
		c.last.Store(last)
		c.written.Store(true) // last: who sees it set may read the rest
	}
	c.writing.Unlock()
	c.seal = script.Seal{Last: last, Incarnation: c.node.incarnation()}
	if c.bySource {
		return c.req.CommandWithSource(&c.seal)
	}
	return c.req.Command(&c.seal)
}
