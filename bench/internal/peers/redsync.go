package peers

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// clients opens a go-redis client with default options for each node, and closes what it opened if one cannot be.
func clients(ctx context.Context, urls []string) ([]*redis.Client, error) {
	var all []*redis.Client
	for _, u := range urls {
		opts, err := redis.ParseURL(u)
		if err != nil {
			return nil, errors.Join(err, closeClients(all))
		}
		c := redis.NewClient(opts)
		all = append(all, c)
		if err := c.Ping(ctx).Err(); err != nil {
			return nil, errors.Join(err, closeClients(all))
		}
	}
	return all, nil
}

func closeClients(all []*redis.Client) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type redsyncLocker struct {
	clients []*redis.Client
	rs      *redsync.Redsync
}

func openRedsync(ctx context.Context, urls []string, _ time.Duration) (Locker, error) {
	all, err := clients(ctx, urls)
	if err != nil {
		return nil, err
	}
	pools := make([]pool.Pool, len(all))
	for i, c := range all {
		pools[i] = goredis.NewPool(c)
	}
	return &redsyncLocker{all, redsync.New(pools...)}, nil
}

// Lock goes on where redsync gives up after its 32 tries, as a caller who needs the lock has to.
func (r *redsyncLocker) Lock(ctx context.Context, name string) (Lease, error) {
	m := r.rs.NewMutex(name)
	for {
		err := m.LockContext(ctx)
		var taken *redsync.ErrTaken
		switch {
		case err == nil:
			return redsyncLease{m}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed):
			return nil, err
		}
	}
}

func (r *redsyncLocker) Close() error { return closeClients(r.clients) }

type redsyncLease struct{ m *redsync.Mutex }

func (l redsyncLease) Release(ctx context.Context) error {
	ok, err := l.m.UnlockContext(ctx)
	if ok {
		return nil // a majority said so, whatever the others did
	}
	if err == nil {
		err = errors.New("not held any more")
	}
	return err
}
