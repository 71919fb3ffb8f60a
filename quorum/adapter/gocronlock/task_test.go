package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/redquorum/redquorum/quorum"
)

// schedule starts a scheduler with one job, which runs at once and then no more.
func schedule(t *testing.T, l gocron.Locker, task gocron.Task, options ...gocron.JobOption) {
	t.Helper()
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(l))
	must(t, err)
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), task, options...)
	must(t, err)
	s.Start()
	t.Cleanup(func() { must(t, s.Shutdown()) })
}

// fails hears of a job's error.
func fails(errs chan<- error) gocron.JobOption {
	return gocron.WithEventListeners(gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { errs <- err }))
}

func TestJobSeesTheLossOfItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l, begun, errs := cl.locker(), make(chan int64), make(chan error, 1)
		own := errors.New("stopped half-way")
		var cause error
		schedule(t, l, l.Task("report", func(ctx context.Context) error {
			begun <- quorum.LeaseFrom(ctx).Token()
			<-ctx.Done()
			cause = context.Cause(ctx)
			return own
		}), gocron.WithName("report"), fails(errs))
		token := <-begun
		if want := l.Lease("report").Token(); token != want {
			t.Errorf("the job's token is %d, the lease's %d", token, want)
		}
		cl.forceRelease("report", l)
		err := <-errs
		wantIs(t, err, own)
		wantIs(t, err, quorum.ErrLost)
		wantIs(t, cause, quorum.ErrLost)
	})
}

func TestContextOfAJobEndsWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l, done := cl.locker(), make(chan context.Context, 1)
		schedule(t, l, l.Task("report", func(ctx context.Context) error {
			done <- ctx
			return nil
		}), gocron.WithName("report"))
		ctx := <-done
		time.Sleep(moment) // and not when its lock is free
		wantIs(t, ctx.Err(), context.Canceled)
		must(t, l.Drain(t.Context()))
	})
}

func TestTaskWithoutItsLockIsNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l := cl.locker()
		for _, job := range []string{"report", "reports"} {
			errs := make(chan error, 1)
			var scheduled gocron.Locker = l
			if job == "report" {
				scheduled = cl.locker() // the right name, and another locker
			}
			schedule(t, scheduled, l.Task("report", func(context.Context) error {
				t.Error("it was run")
				return nil
			}), gocron.WithName(job), fails(errs))
			if err := <-errs; !strings.Contains(err.Error(), `"report" runs without its lock`) {
				t.Error(err)
			}
		}
		time.Sleep(hold + moment)
	})
}
