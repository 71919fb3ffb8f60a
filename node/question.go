package node

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// A question is a script that comes first on a connection that go-redis has just made.
//
// go-redis asks a command for its arguments at the moment it writes them. That moment tells two things which nothing else
// does: that the request was sent at all, and what its answer tells of the node's clock.
type question struct {
	*redis.Cmd

	clock  clock.Clock
	req    *script.Prepared
	source bool // the server does not know the script's name

	written atomic.Bool
	sent    clock.Instant
}

// first sends a question and waits for the answer.
func (n *Node) first(ctx context.Context, on *redis.Conn, req script.Request) *question {
	q := &question{Cmd: redis.NewCmd(ctx), clock: n.clock, req: script.Prepare(req)}
	if redis.HasErrorPrefix(on.Process(ctx, q), "NOSCRIPT") {
		q = &question{Cmd: redis.NewCmd(ctx), clock: n.clock, req: q.req, source: true}
		_ = on.Process(ctx, q) // it has the error
	}
	return q
}

// Args returns the command and its arguments.
func (q *question) Args() []any {
	q.sent = q.clock.Now()
	q.written.Store(true) // last: who sees it set may read the rest
	return q.req.Command(script.Seal{}, q.source)
}

func (q *question) way() way { return way{sent: q.written.Load(), req: q.req} }

var _ redis.Cmder = (*question)(nil)
