package node

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// A Call is one request on its way to a node. It is used once.
type Call struct {
	// Request is what to run. Whoever asks several nodes the same prepares it once.
	Request *script.Prepared
	// Until is the last moment at which the request may take effect; the zero Instant means any.
	Until clock.Instant
	// Deadline is when the call ends, answered or not; the zero Time means never.
	Deadline time.Time
	// To is told the outcome, exactly once.
	To Receiver

	ctx      context.Context // of Run; nil for a call that nobody waits for
	told     chan outcome    // of those who wait, in place of To; has room for one
	words    []string        // of a command that is no script, in place of Request
	guards   bool            // a question of the guard's own
	relies   bool            // on what the sentinels say
	bySource bool            // the server does not know the script's name
	repeated bool            // after it was refused untouched
	waited   bool            // behind others, for room on the connection
	resent   bool            // after nothing of it was written
	hopes    bool            // for the connection that is being made

	// As of the last time it was written. Guarded by the stream's mutex, like the stage.
	sent  clock.Instant
	last  int64
	stage stage

	received clock.Instant
}

// Received is when the answer came, on the clock of this process; the zero Instant if none did. It is for the Receiver.
func (c *Call) Received() clock.Instant { return c.received }

// A Receiver takes the outcome of a call. It is called by the goroutine that reads from the node, and must not block: all
// that comes from the node waits for it. It may send further calls.
type Receiver interface {
	// Answered tells what the node answered. An error is an [*Error].
	Answered(reply script.Reply, err error)
}

// A stage is where a call is.
type stage uint8

const (
	apart  stage = iota // being checked, or not sent yet
	queued              // it waits for others
	flying              // it was written
	left                // nobody waits for it any more
)

// Send sets a call on its way and does not wait for it. One that cannot be sent may be told so before Send returns.
//
// A script the node does not know is sent with its source in the same call. A request that the node refused untouched is
// repeated once, if there is time left: one that the node found too late (its clock was set forward since the last
// reply; the refusal taught us the new time), and one that found another incarnation of the node than the one that was
// checked (it was flushed, say), after a new check.
func (n *Node) Send(c *Call) {
	switch {
	case n.closed.Load():
		n.tell(outcome{call: c, err: &Error{Node: n.name, Err: ErrClosed}})
	case n.guard.on && n.guard.doubt.Load():
		n.sendAside(c, true)
	case n.sentinels != nil:
		n.sendAside(c, false)
	default:
		n.stream.put(c)
	}
}

// Run runs one script and waits for its answer, as [Node.Send] does it: until is the last moment at which it may take
// effect. The call ends at ctx's deadline; a cancellation ends it only while nothing was sent. An error is an [*Error].
func (n *Node) Run(ctx context.Context, req script.Request, until clock.Instant) (script.Reply, error) {
	if ctx.Err() != nil {
		return script.Reply{}, &Error{Node: n.name, Err: ErrTimeout}
	}
	c := &Call{Request: script.Prepare(req), Until: until, told: make(chan outcome, 1), ctx: ctx}
	c.Deadline, _ = ctx.Deadline()
	n.Send(c)
	o := n.await(ctx, c)
	return o.reply, o.err
}

// await waits for the outcome of a call, or for ctx while it was not sent.
func (n *Node) await(ctx context.Context, c *Call) outcome {
	select {
	case o := <-c.told:
		return o
	case <-ctx.Done():
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) && n.stream.leave(c) {
		return outcome{err: &Error{Node: n.name, Err: ErrTimeout}}
	}
	return <-c.told // its own deadline ends it, as that of one that was sent
}

// outcome is how a call ended.
type outcome struct {
	call   *Call
	reply  script.Reply
	record *script.Record // of a check
	values []value        // of a command that is no script
	err    error
	at     clock.Instant // when the answer came; one reading for all that came together
}

// ask sends a question of the guard's own and waits for the answer. It finds out for itself what server it got to.
func (n *Node) ask(ctx context.Context, req script.Request, until clock.Instant) (*Call, outcome) {
	c := &Call{Request: script.Prepare(req), Until: until, told: make(chan outcome, 1), guards: true}
	c.Deadline, _ = ctx.Deadline()
	n.stream.put(c)
	return c, n.await(ctx, c)
}

// sendAside sends a call when what it has to wait for is done: a check of the node, perhaps, and the word of its sentinels.
func (n *Node) sendAside(c *Call, checked bool) {
	prepare := func() {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		if !c.Deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, c.Deadline)
			defer cancel()
		}
		if checked {
			if _, err := n.Check(ctx); err != nil {
				n.stream.end(c, err)
				return
			}
		}
		if n.sentinels != nil {
			if err := n.rely(ctx, c); err != nil {
				n.stream.end(c, &Error{Node: n.name, Err: err})
				return
			}
		}
		n.stream.put(c)
	}
	if !n.stream.aside(prepare) {
		n.stream.end(c, &Error{Node: n.name, Err: ErrClosed})
	}
}

// rely bounds a call by the word of the sentinels: it is answered by the server they named while that is good, or not at all.
func (n *Node) rely(ctx context.Context, c *Call) error {
	_, relied, err := n.sentinels.rely(ctx)
	switch {
	case err != nil:
		return err
	case n.sentinels.rests():
		return ErrPromoted
	}
	if !c.Until.IsZero() && relied.Before(c.Until) {
		c.Until = relied
	}
	if end := time.Now().Add(relied.Sub(n.clock.Now())); c.Deadline.IsZero() || end.Before(c.Deadline) {
		c.Deadline = end
	}
	c.relies = true
	return nil
}

// answered takes in what a call was answered, or that it was not.
func (n *Node) answered(o outcome) {
	c, reply, err := o.call, o.reply, o.err
	unknown := err != nil && !c.bySource && c.words == nil && redis.HasErrorPrefix(err, "NOSCRIPT")
	switch {
	case unknown:
		c.bySource = true
		// Either nobody has sent this script yet, or the server forgot it, and then perhaps more than that.
		n.again(c, n.guard.on && !c.guards)
		return
	case err != nil:
		if unsure(err) {
			n.guard.doubt.Store(true)
		}
		o.err = n.wrap(err, c.way())
		fallthrough
	case c.guards, c.words != nil:
		n.tell(o)
		return
	case o.record != nil:
		o.err = n.wrap(errOdd, c.way())
		n.tell(o)
		return
	}
	n.offset.learn(reply.Now, c.sent, o.at)
	untouched := reply.Status == script.Stranger || reply.Status == script.Expired
	if untouched && !c.repeated && (c.Until.IsZero() || o.at.Before(c.Until)) {
		c.repeated = true
		n.again(c, reply.Status == script.Stranger)
		return
	}
	n.tell(o)
}

// tell tells a call's outcome.
func (n *Node) tell(o outcome) {
	o.call.received = o.at
	if o.call.told != nil {
		o.call.told <- o
	} else {
		o.call.To.Answered(o.reply, o.err)
	}
}

// again sends a call once more that has had no effect, perhaps after a check.
func (n *Node) again(c *Call, checked bool) {
	if checked || n.sentinels != nil && c.relies {
		n.sendAside(c, checked)
	} else {
		n.stream.put(c)
	}
}

// A way is how far a request got, which its error tells.
type way struct {
	sent bool
	last int64 // the last moment, on the node's clock, at which it may take effect
	req  *script.Prepared
}

func (c *Call) way() way {
	if c.Request == nil {
		return way{} // nothing that could take effect was sent
	}
	return way{sent: c.stage == flying, last: c.last, req: c.Request}
}

var errOdd = errors.New("unexpected answer")
