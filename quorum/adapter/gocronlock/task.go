package gocronlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-co-op/gocron/v2"

	"github.com/redquorum/redquorum/quorum"
)

// Task is a task that knows its lock. The context of fn ends with gocron's own, and when the lease is lost, with cause
// quorum.ErrLost. It carries the lease: quorum.LeaseFrom(ctx).Token() is what a resource compares. A loss is also an error
// of the job, which gocron.AfterJobRunsWithError hears of, beside fn's own.
//
// job is the name that gocron.WithName gives to the job, and this locker is the one that the scheduler or the job has:
// a run without a lock of that name fails, and fn is not called.
func (l *Locker) Task(job string, fn func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		lease := l.Lease(job)
		if lease == nil {
			return fmt.Errorf("gocronlock: job %q runs without its lock: want this locker, and gocron.WithName(%[1]q)", job)
		}
		// The lock may be kept for longer than fn runs, and its context must not.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := fn(lease.Context(ctx))
		if errors.Is(lease.Err(), quorum.ErrLost) {
			err = errors.Join(err, fmt.Errorf("gocronlock: job %q: %w", job, quorum.ErrLost))
		}
		return err
	})
}
