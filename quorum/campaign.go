package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Campaign makes the caller leader of name, again and again: it waits for the lock, runs lead while it is held, and
// stands for it again after a loss. Of all who campaign for a name one leads at a time, for as long as leases exclude
// each other (see the package's documentation).
//
// lead runs on the caller's goroutine. Its ctx ends with the term, with cause ErrLost when the lease is lost, and with
// the ctx of Campaign. term is the lease: its Token is greater in every term than in all before, whoever led then, and
// what a leader writes belongs behind a resource that compares it, since a process can be paused between looking at ctx
// and writing. Within one Campaign no term begins before lead has returned from the last, however late: where it does
// not heed its ctx, another process leads meanwhile, and a warning is logged.
//
// What the return of lead means depends on whether it led until then:
//
//   - It did: Campaign resigns and returns what lead returned, nil included. So a leader gives up its office by
//     returning, and one whose ctx ended with that of Campaign may tidy up first: it leads until it returns.
//   - The term was lost (ErrLost): Campaign stands again, whatever lead returned. An error that is not about the loss
//     is logged. Work that is to be done once is done when the resource says so, not when lead does.
//
// A panic or runtime.Goexit of lead resigns and ends Campaign. So does lead when it releases term.
//
// Waiting goes on through outages, and through errors that only an operator can mend, which are logged. It ends when
// ctx does, with a *QuorumError that matches ctx's error, or with ErrClosed. A resignation that no quorum confirmed is
// logged; the lock then runs out with its TTL.
//
// With WithLeaseTime, or MaxHold, a term is lost when it has lasted so long, and whoever waits comes next. WithWaitTime
// is refused. A campaign never nests: under a context that carries a lease of the same name it waits for the end of that
// one, and two campaigns of one process exclude each other as those of two do. lead itself may take the lock again under
// its ctx, as under [Lease.Context].
func (c *Coordinator) Campaign(ctx context.Context, name string, lead func(ctx context.Context, term *Lease) error, opts ...Option) error {
	if lead == nil {
		return errors.New("redquorum: Campaign with a nil function")
	}
	t, err := c.terms(name, opts)
	if err == nil && t.limited {
		err = errors.New("redquorum: WithWaitTime on a campaign: bound the waiting by Campaign's ctx")
	}
	if err != nil {
		return err
	}
	for {
		term, err := c.elected(ctx, name, opts)
		if err != nil {
			return err
		}
		if over, err := c.office(ctx, term, lead); over {
			return err
		}
	}
}

// elected waits until the lock is ours. It keeps trying as Mutex.Lock does.
func (c *Coordinator) elected(ctx context.Context, name string, opts []Option) (*Lease, error) {
	for {
		term, err := c.Acquire(WithoutLease(ctx), name, opts...)
		var votes *QuorumError
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrClosed) || !errors.As(err, &votes) {
			return term, err
		}
		c.log.Error("nobody can be elected, trying again", "name", name, "error", err)
		pause := time.NewTimer(retryPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-c.closing:
		}
		pause.Stop()
	}
}

// office runs lead for one term, and tells whether the campaign is over with it.
func (c *Coordinator) office(ctx context.Context, term *Lease, lead func(context.Context, *Lease) error) (over bool, err error) {
	log := c.log.With("name", term.Name(), "token", term.Token())
	log.Info("elected")
	var watch sync.WaitGroup
	left := make(chan struct{})
	watch.Go(func() { term.overstayed(left, log) })
	defer func() {
		close(left)
		watch.Wait()
		// ctx may be over, and the release is due all the same; it waits a few node timeouts at most.
		release := term.Release(context.WithoutCancel(ctx))
		if release != nil && !errors.Is(release, ErrLost) && !errors.Is(release, ErrReleased) {
			log.Warn("resignation not confirmed", "error", release)
		}
	}()

	err = lead(term.Context(ctx), term)
	switch end := term.Err(); {
	case errors.Is(end, ErrLost):
		if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, context.Canceled) {
			log.Warn("a leader that had lost its lease returned an error", "error", err)
		}
		return false, nil
	case end != nil && c.shut():
		return true, errors.Join(err, fmt.Errorf("campaign for %q: %w", term.Name(), ErrClosed))
	}
	return true, err
}

// overstayed logs the loss of a term, and that its leader goes on.
func (l *Lease) overstayed(left <-chan struct{}, log *slog.Logger) {
	select {
	case <-l.Done():
	case <-left:
		return
	}
	if !errors.Is(l.Err(), ErrLost) {
		return
	}
	log.Warn("leadership lost")
	// As long as between two renewals: time enough for a leader that heeds its context.
	grace := time.NewTimer(l.hold.ttl / 3)
	defer grace.Stop()
	select {
	case <-grace.C:
		log.Error("a leader goes on though its lease is lost: somebody else may lead")
	case <-left:
	}
}

// shut tells whether the coordinator is closed.
func (c *Coordinator) shut() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}
