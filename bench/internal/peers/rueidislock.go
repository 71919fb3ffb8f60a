package peers

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidisLocker struct{ locker rueidislock.Locker }

// openRueidislock returns what opens one for which so many keys of twice as many less one make a lock.
func openRueidislock(majority int32) func(context.Context, []string, time.Duration) (Locker, error) {
	return func(_ context.Context, urls []string, ttl time.Duration) (Locker, error) {
		option, err := rueidis.ParseURL(urls[0])
		if err != nil {
			return nil, err
		}
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   option,
			KeyMajority:    majority,
			KeyValidity:    ttl,
			NoLoopTracking: true,
		})
		if err != nil {
			return nil, err
		}
		return rueidisLocker{locker}, nil
	}
}

func (r rueidisLocker) Lock(ctx context.Context, name string) (Lease, error) {
	held, release, err := r.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidisLease{held, release}, nil
}

func (r rueidisLocker) Close() error {
	r.locker.Close()
	return nil
}

type rueidisLease struct {
	held    context.Context
	release context.CancelFunc
}

func (l rueidisLease) Release(context.Context) error {
	err := l.held.Err()
	l.release()
	return err
}

func (l rueidisLease) Err() error { return l.held.Err() }
