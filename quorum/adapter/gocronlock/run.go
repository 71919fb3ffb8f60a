package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redquorum/redquorum/quorum"
)

// A run is one execution of a job, with its lock.
type run struct {
	locker *Locker
	job    string
	freed  chan struct{} // closed when the lock was given back

	// Guarded by locker.mu.
	lease    *quorum.Lease // nil until the grant
	granted  time.Time
	unlocked bool // the job is done; the lock may be kept all the same
}

var _ gocron.Lock = (*run)(nil)

// Unlock gives the lock back, but not before MinHold is over: then it returns at once, and the lock is given back in the
// background. It returns an error that matches quorum.ErrLost if the lease was lost while the job ran.
//
// gocron calls it with the job's context, which is over when the scheduler shuts down. The release is sent all the same.
func (r *run) Unlock(ctx context.Context) error {
	l := r.locker
	l.mu.Lock()
	if r.unlocked {
		l.mu.Unlock()
		return fmt.Errorf("gocronlock: job %q: %w before", r.job, quorum.ErrReleased)
	}
	r.unlocked = true
	l.mu.Unlock()

	rest := l.cfg.MinHold - time.Since(r.granted)
	if rest <= 0 || r.lease.Err() != nil {
		return r.free(ctx)
	}
	go func() {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.lease.Done(): // lost, or the coordinator was closed: there is nothing to keep
		}
		_ = r.free(context.Background()) // logged
	}()
	return nil
}

// free gives the lock back. What goes wrong is logged, since nobody looks at what it returns.
func (r *run) free(ctx context.Context) error {
	defer r.locker.leave(r)
	err := r.lease.Release(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, quorum.ErrLost):
		r.locker.cfg.Logger.Error("lease of a job lost: it may have been run elsewhere at the same time, or once more",
			"job", r.job, "token", r.lease.Token())
	case !errors.Is(err, quorum.ErrReleased): // the coordinator was closed, or the job gave it back itself
		r.locker.cfg.Logger.Warn("release of a job's lock not confirmed", "job", r.job, "error", err)
	}
	return fmt.Errorf("gocronlock: job %q: %w", r.job, err)
}
