package node

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A queue lets the requests of all goroutines to one node share round trips.
//
// A request that finds a connection free goes out at once, on the caller's own goroutine: nobody is handed anything, and
// nobody waits for company. While as many batches are under way as there may be, requests queue up, and one of them
// takes the others along in one pipeline. So the load makes the batches: one caller has none, and a hundred share
// a write and a read. On the way a request keeps what it is alone: its own deadline, its last moment as of the write, its
// own answer.
//
// go-redis has an auto-pipeline of its own, experimental as of v9.23. Measured against this one with acquire and release on
// names of their own, five servers and the client on two cores (pairs a second, and client's CPU time for a pair):
//
//	callers         1              16             128
//	this queue      2,700 290 µs   4,200–5,300 170–220 µs   5,100–5,300 205 µs
//	auto-pipeline   1,800 500 µs   4,300–4,900 210–245 µs   4,400–4,700 255–280 µs
//
// It hands every request to a goroutine, which costs most where there is no company, and it knows nothing of last moments.
//
// A node that hangs holds up no more than the batches that are under way. What waits behind them leaves the queue at its
// own deadline, and was never sent.
type queue struct {
	node *Node
	most int // batches under way at once

	mu      sync.Mutex
	waiting []*call
	flying  int // batches under way
}

const (
	// defaultConnections: while the server works on one batch, the client writes or reads another. One more gains nothing
	// where both share two cores, and costs a connection.
	defaultConnections = 2
	// mostTogether bounds a batch, and so what is lost when its connection breaks, and how long the server is busy with it.
	mostTogether = 64
	// mostWaiting bounds the queue. What comes on top is refused at once: it would expire there.
	mostWaiting = 16384
)

// errFull is a request for which there was no room in the queue.
var errFull = errors.New("too many requests wait for this node")

// errLate is a request that left the queue after its last moment.
var errLate = errors.New("the request's last moment came while it waited for others")

// run sends a request and waits for its answer, or for ctx.
func (q *queue) run(ctx context.Context, c *call) error {
	q.mu.Lock()
	switch {
	case q.flying < q.most: // then nobody waits
		q.flying++
		q.mu.Unlock()
		defer q.landed()
		return q.node.client.Process(ctx, c)
	case len(q.waiting) >= mostWaiting:
		q.mu.Unlock()
		return errFull
	}
	c.ctx, c.turn = ctx, make(chan bool, 1)
	q.waiting = append(q.waiting, c)
	q.mu.Unlock()

	var leads bool
	select {
	case leads = <-c.turn:
	case <-ctx.Done():
		select {
		case leads = <-c.turn: // at the same moment
		default:
			return q.abandon(c)
		}
	}
	if leads {
		q.fly(c)
	}
	return c.outcome
}

// landed sends off those that wait, as the next batch.
func (q *queue) landed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next()
}

// next is landed with q.mu held.
func (q *queue) next() {
	if len(q.waiting) == 0 {
		q.flying--
		q.waiting = nil // what was long once is not kept
		return
	}
	n := min(len(q.waiting), mostTogether)
	batch := slices.Clone(q.waiting[:n])
	q.waiting = q.waiting[n:]
	lead(batch)
}

// lead makes the request that has most time the leader of a batch: it stays until the batch is back, and any other would
// be kept beyond its own deadline by that. It is called with q.mu held: whom it chooses has not left.
func lead(batch []*call) {
	leader := batch[0]
	for _, c := range batch[1:] {
		if c.outlasts(leader) {
			leader = c
		}
	}
	leader.batch = batch
	leader.turn <- true
}

// outlasts tells whether a request has more time than another.
func (c *call) outlasts(other *call) bool {
	d, ends := c.ctx.Deadline()
	than, otherEnds := other.ctx.Deadline()
	return otherEnds && (!ends || d.After(than))
}

// fly sends a leader's batch.
func (q *queue) fly(leader *call) {
	defer q.landed()
	sent := make([]*call, 0, len(leader.batch))
	for _, c := range leader.batch {
		if c.outcome = c.expired(); c.outcome == nil {
			sent = append(sent, c)
		}
	}
	// Nobody's own context: that of one must not end the others'.
	ctx := context.Background()
	if deadline, ok := leader.ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	switch len(sent) {
	case 0:
	case 1:
		sent[0].outcome = q.node.client.Process(ctx, sent[0])
	default:
		q.node.together(ctx, sent)
	}
	for _, c := range leader.batch {
		if c != leader {
			c.turn <- false
		}
	}
}

// together sends requests in one pipeline.
//
// Not in the client's own, which would use connections of a second pool, with 256 KiB of buffers each.
func (n *Node) together(ctx context.Context, calls []*call) {
	conn := n.client.Conn()
	pipe := conn.Pipeline()
	for _, c := range calls {
		_ = pipe.Process(ctx, c) // only queues
	}
	_, _ = pipe.Exec(ctx) // each has its own error
	_ = conn.Close()      // gives it back
	for _, c := range calls {
		c.outcome = c.Err()
	}
}

// abandon takes a request out of the queue whose time is up. One that is in a batch already is left there: it is not sent
// any more, or has no effect.
func (q *queue) abandon(c *call) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, c); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return c.ctx.Err()
	}
	select {
	case leads := <-c.turn:
		if !leads {
			return c.outcome // it has just come back
		}
	default:
		c.leave()
		return c.ctx.Err()
	}
	others := slices.DeleteFunc(c.batch, func(o *call) bool { return o == c || o.gone() })
	if len(others) > 0 {
		lead(others)
	} else {
		q.next()
	}
	return c.ctx.Err()
}

// expired tells whether it is too late to send the request.
func (c *call) expired() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !c.until.IsZero() && !c.node.clock.Now().Before(c.until) {
		return errLate
	}
	return nil
}

var _ redis.Cmder = (*call)(nil)
