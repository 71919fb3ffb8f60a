package node

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Permitted tries what locks need beside their scripts: to read each of some keys, to run a script that the server does not
// know yet, and to listen to a channel. It changes nothing. What the server refuses, the error names (see [Refused]): the
// command, the key or the channel.
func (n *Node) Permitted(ctx context.Context, keys []string, channel string) error {
	if n.closed.Load() {
		return &Error{Node: n.name, Err: ErrClosed}
	}
	conn := n.client.Conn() // the client's own pipeline would use connections of a second pool, with 256 KiB of buffers each
	defer func() { _ = conn.Close() }()
	pipe := conn.Pipeline()
	for _, key := range keys {
		pipe.PTTL(ctx, key)
	}
	pipe.Eval(ctx, "return 1", nil)
	pipe.PubSubNumSub(ctx, channel)
	answers, _ := pipe.Exec(ctx) // each has its own error
	for i, answer := range answers {
		about := channel
		if i < len(keys) {
			about = keys[i]
		}
		if err := answer.Err(); err != nil {
			return n.refusal(err, about)
		}
	}
	return n.mayListen(ctx, channel)
}

// mayListen subscribes to a channel, looks whether the connection lives, and leaves.
func (n *Node) mayListen(ctx context.Context, channel string) error {
	pubsub, hangUp := n.subscriber()
	defer hangUp()
	for _, step := range []func() error{
		func() error { return pubsub.Subscribe(ctx, channel) },
		func() error { return pubsub.Ping(ctx) },
		func() error { return pubsub.Unsubscribe(ctx, channel) },
	} {
		err := step()
		if err == nil {
			err = receive(ctx, pubsub)
		}
		if err != nil {
			return n.refusal(err, channel)
		}
	}
	return nil
}

// receive waits for one answer.
func receive(ctx context.Context, pubsub *redis.PubSub) error {
	var left time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		left = max(1, time.Until(deadline)) // 0 would be for ever
	}
	_, err := pubsub.ReceiveTimeout(ctx, left)
	return err
}
