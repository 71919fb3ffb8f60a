// Package worker is what a worker process of the demo does: its workers sell, each on its own, until nothing is left.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/counter"
	"github.com/redquorum/redquorum/quorum"
)

// Run gets the job from the other end of the line and does it. It returns nil when the stock is sold out, and when ctx
// or the line ended: nobody is waiting for the work any longer. It takes no lock along.
func Run(ctx context.Context, line io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := counter.NewClient(lifeline{line, cancel})
	defer client.Close()
	job, err := client.Job()
	if err != nil {
		return fmt.Errorf("no job: %w", err)
	}

	visit := func(w worker) (soldOut bool, err error) { return w.sell(ctx, 0) }
	if job.Lock != "" {
		locks, err := quorum.Open(quorum.Config{TTL: job.TTL}, job.Nodes...)
		if err != nil {
			return err
		}
		defer locks.Close()
		visit = func(w worker) (soldOut bool, err error) { return w.sellLocked(ctx, locks) }
	}

	var shift errgroup.Group
	for n := range job.Workers {
		shift.Go(func() error {
			w := worker{number: n + 1, client: client, job: job}
			for soldOut := false; !soldOut && ctx.Err() == nil; {
				var err error
				if soldOut, err = visit(w); err != nil && ctx.Err() == nil && !beginAgain(err) {
					return err
				}
			}
			return nil
		})
	}
	return shift.Wait()
}

// beginAgain tells whether an order came to nothing because its lease went in the middle.
func beginAgain(err error) bool {
	return errors.Is(err, quorum.ErrLost) || errors.Is(err, counter.ErrRefused)
}

// worker sells one item after the other.
type worker struct {
	number int
	client *counter.Client
	job    counter.Job
}

// sellLocked sells one item inside a lease of its own.
func (w worker) sellLocked(ctx context.Context, locks *quorum.Coordinator) (soldOut bool, err error) {
	lease, err := locks.Acquire(ctx, w.job.Lock)
	if err != nil {
		return false, err
	}
	// What the release says is no news: whether an item was sold the stock has told us, and a lease that went just
	// after that is no reason to sell it again.
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	return w.sell(lease.Context(ctx), lease.Token())
}

// sell looks, thinks and sells one item: two steps that are safe only if nobody else comes in between.
func (w worker) sell(ctx context.Context, token int64) (soldOut bool, err error) {
	quantity, err := w.client.Look(w.number, token)
	if err != nil || quantity == 0 {
		return err == nil, err
	}
	thinking := time.NewTimer(w.job.Think*3/4 + rand.N(w.job.Think/2))
	defer thinking.Stop()
	select {
	case <-thinking.C:
	case <-ctx.Done():
	}
	// Err reads the clock: after a suspend the lease is over at the first look, before any timer has noticed.
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), w.client.Leave(w.number))
	}
	return false, w.client.Sell(w.number, token, quantity)
}

// lifeline ends the work when the line has ended, also while no call is under way.
type lifeline struct {
	io.ReadWriteCloser
	cut func()
}

func (l lifeline) Read(p []byte) (int, error) {
	n, err := l.ReadWriteCloser.Read(p)
	if err != nil {
		l.cut()
	}
	return n, err
}
