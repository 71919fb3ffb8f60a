package migrate

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// As it becomes.

func open(ctx context.Context, servers []*redis.Options) (*quorum.Coordinator, error) {
	var nodes []*node.Node
	for _, options := range servers {
		n, err := node.New(options)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	locks, err := quorum.New(nodes, quorum.Config{TTL: 30 * time.Second})
	if err != nil {
		return nil, err
	}
	if err := locks.Ping(ctx); err != nil { // a quorum answers, and lets us do what locks need
		return nil, errors.Join(err, locks.Close())
	}
	return locks, nil
}

func sell(ctx context.Context, locks *quorum.Coordinator, sell func(context.Context) error) error {
	return locks.Do(ctx, "stock", sell)
}

func sellStepByStep(ctx context.Context, locks *quorum.Coordinator, sell func(ctx context.Context, token int64) error) error {
	lease, err := locks.Acquire(ctx, "stock", quorum.WithWaitTime(5*time.Second))
	switch {
	case errors.Is(err, quorum.ErrNotAcquired):
		return err // others have it; RetryAfter of the *quorum.QuorumError says when to come back
	case errors.Is(err, quorum.ErrNoQuorum):
		return err // too few nodes answered: nobody knows whether others have it
	case err != nil:
		return err // ctx ended, a bad name or option, or the coordinator was closed
	}
	err = sell(lease.Context(ctx), lease.Token()) // the context ends when the lease is lost
	return errors.Join(err, lease.Release(ctx))   // quorum.ErrLost, if it was
}

func sellWithinAFixedTime(ctx context.Context, locks *quorum.Coordinator, sell func(context.Context) error) error {
	return locks.Do(ctx, "stock", sell, quorum.WithLeaseTime(8*time.Second)) // ends then, and is not renewed
}

// As a Java service's neighbour.

func tryLock(ctx context.Context, locks *quorum.Coordinator, wait, lease time.Duration) (*quorum.Lease, error) {
	if lease > 0 {
		return locks.Acquire(ctx, "stock", quorum.WithWaitTime(wait), quorum.WithLeaseTime(lease))
	}
	return locks.Acquire(ctx, "stock", quorum.WithWaitTime(wait)) // with the watchdog
}

func nested(ctx context.Context, locks *quorum.Coordinator, work func(context.Context) error) error {
	return locks.Do(ctx, "stock", func(ctx context.Context) error {
		return locks.Do(ctx, "stock", work) // one hold more of the same lock: ctx carries it, and no thread does
	})
}
