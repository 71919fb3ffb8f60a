package migrate

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// As it is written with redsync.

func openRedsync(servers []*redis.Options) *redsync.Redsync {
	var pools []redsyncredis.Pool
	for _, options := range servers {
		pools = append(pools, goredis.NewPool(redis.NewClient(options)))
	}
	return redsync.New(pools...)
}

func sellWithRedsync(ctx context.Context, rs *redsync.Redsync, sell func(context.Context) error) error {
	mutex := rs.NewMutex("stock", redsync.WithExpiry(30*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() { _, _ = mutex.Unlock() }() // not UnlockContext(ctx): it sends nothing when ctx is over
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-time.After(10 * time.Second):
				if ok, _ := mutex.ExtendContext(ctx); !ok && time.Now().After(mutex.Until()) {
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return sell(ctx)
}
