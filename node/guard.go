package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// The restart guard, as far as it concerns one node: every new connection checks the node's record before its first
// script, and acquires and renewals carry the incarnation that was found. A server that was started again without its
// data, flushed, or replaced is another incarnation, and does nothing until it has been looked at.

// ErrReplica is a server that is no master. What it was told last, its master may not know, and the other way round.
var ErrReplica = errors.New("node: a replica, not a master")

// ErrUnguarded is a master that a Sentinel watches and that answers before any replica has the data: the replica that
// takes over would not know of the lock. Set min-replicas-to-write to 1 at least.
var ErrUnguarded = errors.New("node: behind Sentinel with min-replicas-to-write 0")

// A Guard is what a Node has to know to check its server.
type Guard struct {
	// Client returns a name of this client that nobody else has: incarnations that it begins are called after it.
	Client func() string
	// Nodes is how many nodes the client is configured with.
	Nodes int
	// TTL returns the longest that the client uses or has heard of.
	TTL func() time.Duration
	// Checked is told what every check found, before any request goes out on the connection. It must not block.
	Checked func(script.Record)
}

// guard is the state of a node's restart guard.
type guard struct {
	Guard

	on bool
	// record is what the last check found.
	record atomic.Pointer[script.Record]
	// doubt: an answer gave reason to check again before anything else is sent.
	doubt atomic.Bool
	// begun numbers the incarnations that may have to be begun.
	begun atomic.Uint64
}

// Guard turns the restart guard on. It comes before the first request.
func (n *Node) Guard(g Guard) {
	n.guard.Guard = g
	n.guard.on = true
}

// Check looks at the node's record.
func (n *Node) Check(ctx context.Context) (script.Record, error) {
	if n.closed.Load() {
		return script.Record{}, &Error{Node: n.name, Err: ErrClosed}
	}
	settings := func() map[string]string { return n.settings(ctx) }
	return n.check(settings, func(req script.Check) (script.Record, error) {
		c, o := n.ask(ctx, req, clock.Instant{})
		switch {
		case o.err != nil:
			return script.Record{}, o.err
		case o.record == nil:
			return script.Record{}, n.wrap(errOdd, c.way())
		}
		n.offset.learn(o.record.Now, c.sent, n.clock.Now())
		return *o.record, nil
	})
}

// Settle decides what an incarnation is worth that began without a record. until is the last moment at which the
// decision may take effect.
func (n *Node) Settle(ctx context.Context, found script.Record, quarantine time.Duration, until clock.Instant) error {
	req := script.Settle{
		Incarnation: found.Incarnation, Run: found.Run, Quarantine: quarantine, TTL: n.guard.TTL(), Nodes: n.guard.Nodes,
		Durable: durable(n.settings(ctx)), Lingers: n.lingers(),
	}
	switch _, o := n.ask(ctx, req, until); {
	case o.err != nil:
		return o.err
	case o.reply.Status != script.Settled:
		return &Error{Node: n.name, Err: fmt.Errorf("not settled: %s", o.reply.Status)}
	}
	_, err := n.Check(ctx)
	return err
}

// incarnation is what acquires and renewals carry.
func (n *Node) incarnation() string {
	if r := n.guard.record.Load(); n.guard.on && r != nil {
		return r.Incarnation
	}
	return ""
}

// checkNew looks at the record over a connection that was just made.
func (n *Node) checkNew(ctx context.Context, conn *redis.Conn) error {
	settings := func() map[string]string { return firstSettings(ctx, conn) }
	_, err := n.check(settings, func(req script.Check) (script.Record, error) {
		q := n.first(ctx, conn, req)
		if err := q.Err(); err != nil {
			return script.Record{}, n.wrap(err, q.way())
		}
		received := n.clock.Now()
		record, err := script.ParseRecord(q.Val())
		if err != nil {
			return script.Record{}, n.wrap(errors.Join(errOdd, err), q.way())
		}
		n.offset.learn(record.Now, q.sent, received)
		return record, nil
	})
	return err
}

// check takes in what a look at the record finds.
func (n *Node) check(settings func() map[string]string, look func(script.Check) (script.Record, error)) (script.Record, error) {
	n.guard.doubt.Store(false) // before looking: what gives doubt meanwhile counts
	req := script.Check{Fresh: fmt.Sprintf("%s/%d", n.guard.Client(), n.guard.begun.Add(1)), TTL: n.guard.TTL(), Nodes: n.guard.Nodes, Lingers: n.lingers()}
	record, err := look(req)
	if err == nil && record.Standing == script.StandingAsk {
		req.Durable = durable(settings())
		record, err = look(req)
	}
	if err == nil {
		switch record.Standing {
		case script.StandingReplica:
			err = &Error{Node: n.name, Err: ErrReplica}
		case script.StandingUnguarded:
			err = &Error{Node: n.name, Err: ErrUnguarded}
		}
	}
	if err != nil {
		n.guard.doubt.Store(true)
		return script.Record{}, unsent(err)
	}
	n.guard.record.Store(&record)
	if n.sentinels != nil {
		undecided := record.Standing == script.StandingUnsettled
		n.sentinels.found(undecided || record.Quarantine > 0, record.Age, n.clock.Now())
	}
	if n.guard.Checked != nil {
		n.guard.Checked(record)
	}
	return record, nil
}

// lingers is for how long a server that was the node before this one may go on voting.
func (n *Node) lingers() time.Duration {
	if n.sentinels == nil {
		return 0
	}
	return lingers
}

// unsent is the error of a check, as that of the request which had to wait for it: the request was not sent, or was
// refused untouched, whatever became of the check.
func unsent(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Sent {
		return &Error{Node: e.Node, Refused: e.Refused, Err: e.Err}
	}
	return err
}

// durable tells what a server's settings say about whether it writes everything to disk before it answers. Where they may not
// be asked for it does not.
func durable(settings map[string]string) script.Durability {
	if settings["appendonly"] == "yes" && settings["appendfsync"] == "always" && settings["no-appendfsync-on-rewrite"] == "no" {
		return script.Durable
	}
	return script.NotDurable
}

// settings asks for the settings that durable wants to know.
func (n *Node) settings(ctx context.Context) map[string]string {
	get := n.plain(ctx, "CONFIG", "GET", "*append*")
	n.stream.put(get)
	all := map[string]string{}
	for pairs := n.await(ctx, get).values; len(pairs) >= 2; pairs = pairs[2:] {
		all[pairs[0].text] = pairs[1].text
	}
	return all
}

// firstSettings asks for them over a connection that was just made.
func firstSettings(ctx context.Context, conn *redis.Conn) map[string]string {
	get := redis.NewMapStringStringCmd(ctx, "config", "get", "*append*")
	_ = conn.Process(ctx, get) // it has the error, and no value then
	return get.Val()
}

// unsure tells whether an error is one after which the server may not be what it was. Up to version 6 Redis puts words of
// its own before what a call inside a script was answered.
func unsure(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, class := range []string{"READONLY", "LOADING", "MASTERDOWN"} {
		if strings.Contains(answer.Error(), class) {
			return true
		}
	}
	return false
}
