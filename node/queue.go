package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A queue lets the requests of all goroutines to one node share round trips.
//
// A request that finds a connection free goes out at once, on the caller's own goroutine: nobody is handed anything, and
// nobody waits for company. While as many batches are under way as there may be, requests queue up, and the first to
// come takes all of them along in one pipeline. So the load makes the batches: one caller has none, and a hundred share
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

// landed makes the first that waits the leader of the next batch.
func (q *queue) landed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.flying--
		q.waiting = nil // what was long once is not kept
		return
	}
	q.waiting[0].turn <- true
	q.waiting = q.waiting[1:]
}

// fly sends the leader's request and those that wait.
func (q *queue) fly(leader *call) {
	defer q.landed()
	q.mu.Lock()
	n := min(len(q.waiting), mostTogether-1)
	batch := append([]*call{leader}, q.waiting[:n]...)
	q.waiting = q.waiting[n:]
	q.mu.Unlock()

	var deadline time.Time
	sent := batch[:0:0]
	for _, c := range batch {
		if err := c.expired(); err != nil {
			c.outcome = err
			continue
		}
		if d, ok := c.ctx.Deadline(); ok && d.After(deadline) {
			deadline = d
		}
		sent = append(sent, c)
	}
	// Nobody's own context: that of one must not end the others'.
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	switch len(sent) {
	case 0:
	case 1:
		sent[0].outcome = q.node.client.Process(ctx, sent[0])
	default:
		q.node.together(ctx, sent)
	}
	for _, c := range batch {
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

// abandon takes a request out of the queue whose time is up.
func (q *queue) abandon(c *call) error {
	q.mu.Lock()
	if i := slices.Index(q.waiting, c); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.mu.Unlock()
		return c.ctx.Err()
	}
	q.mu.Unlock()
	if c.written.Load() {
		return c.ctx.Err() // it is on its way; nobody waits for the answer
	}
	// It is a leader, or in a batch that is about to be written: then it may be sent, or not.
	if leads := <-c.turn; leads {
		q.landed()
		return c.ctx.Err()
	}
	return c.outcome
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
