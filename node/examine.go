package node

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// What operators want to know of a server, and locks do not need: so it may be forbidden, or unknown to the server, which is
// an error like any other. Nothing of it changes anything. A Node whose guard is off tells it of replicas, too.

// Info returns what the server tells of itself (INFO), by the names of the fields.
func (n *Node) Info(ctx context.Context) (map[string]string, error) {
	cmd := redis.NewStringCmd(ctx, "info")
	if err := n.ascertain(ctx, cmd); err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(cmd.Val()) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// Settings returns the server's settings whose names match a pattern (CONFIG GET). Passwords are settings, too: whoever asks
// for all has to know what to do with them.
func (n *Node) Settings(ctx context.Context, pattern string) (map[string]string, error) {
	cmd := redis.NewMapStringStringCmd(ctx, "config", "get", pattern)
	if err := n.ascertain(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// Record returns the node's record of the restart guard as it stands (see check.lua), without asking whether it is still
// true; empty if there is none.
func (n *Node) Record(ctx context.Context) (map[string]string, error) {
	cmd := redis.NewMapStringStringCmd(ctx, "hgetall", script.RecordKey)
	if err := n.ascertain(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// A Reading is what a node's clock showed at some moment between two of ours.
type Reading struct {
	Shown          time.Time
	Sent, Received clock.Instant
}

// Time reads the node's clock.
func (n *Node) Time(ctx context.Context) (Reading, error) {
	cmd := redis.NewTimeCmd(ctx, "time")
	r := Reading{Sent: n.clock.Now()}
	if err := n.ascertain(ctx, cmd); err != nil {
		return Reading{}, err
	}
	r.Shown, r.Received = cmd.Val(), n.clock.Now()
	return r, nil
}

// ascertain sends a command that changes nothing.
func (n *Node) ascertain(ctx context.Context, cmd redis.Cmder) error {
	if n.closed.Load() {
		return &Error{Node: n.name, Err: ErrClosed}
	}
	if err := n.client.Process(ctx, cmd); err != nil {
		return n.wrap(err, way{})
	}
	return nil
}
