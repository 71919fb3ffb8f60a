package peers

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

const (
	redislockLease = 30 * time.Second
	redislockRetry = 100 * time.Millisecond
)

type redislockLocker struct {
	clients []*redis.Client
	client  *redislock.Client
}

func openRedislock(ctx context.Context, urls []string, _ time.Duration) (Locker, error) {
	all, err := clients(ctx, urls)
	if err != nil {
		return nil, err
	}
	return &redislockLocker{all, redislock.New(all[0])}, nil
}

// Lock goes on where Obtain gives up, which without a deadline it does after the length of the lease.
func (r *redislockLocker) Lock(ctx context.Context, name string) (Lease, error) {
	for {
		l, err := r.client.Obtain(ctx, name, redislockLease,
			&redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockRetry)})
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
}

func (r *redislockLocker) Close() error { return closeClients(r.clients) }
