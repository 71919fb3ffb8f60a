package node

import (
	"context"
	"slices"
)

// Look returns who has a lock on this node, "" if nobody has, and how many clients listen to a channel. It decides nothing
// and changes nothing, so it needs no script and no last moment, and a node answers that may have forgotten. A key of
// another type is an error. HGETALL is what the scripts use, too; where PUBSUB is not permitted, nobody listens.
func (n *Node) Look(ctx context.Context, name, channel string) (holder string, listeners int, err error) {
	if n.closed.Load() {
		return "", 0, &Error{Node: n.name, Err: ErrClosed}
	}
	conn := n.client.Conn() // see together
	defer func() { _ = conn.Close() }()
	pipe := conn.Pipeline()
	held, heard := pipe.HGetAll(ctx, name), pipe.PubSubNumSub(ctx, channel)
	_, _ = pipe.Exec(ctx) // each has its own error
	if err := held.Err(); err != nil {
		return "", 0, n.wrap(err, &call{}) // nothing that could take effect was sent
	}
	var holders []string
	for h := range held.Val() {
		holders = append(holders, h)
	}
	if len(holders) > 0 {
		holder = slices.Min(holders)
	}
	return holder, int(heard.Val()[channel]), nil
}
