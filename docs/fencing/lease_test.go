package fencing

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

// coordinator is one client of five nodes.
func coordinator(t *testing.T) *quorum.Coordinator {
	t.Helper()
	nodes, err := embedded.Start(5)
	ok(t, err)
	t.Cleanup(nodes.Close)
	// So long a TTL that nobody renews during a test: a holder that was robbed finds out when it renews. The nodes are
	// not what is tested here, so they have time to answer.
	locks, err := quorum.Open(quorum.Config{TTL: 10 * time.Minute, NodeTimeout: patience / 2}, nodes.URLs()...)
	ok(t, err)
	t.Cleanup(func() { ok(t, locks.Close()) })
	return locks
}

func acquire(t *testing.T, locks *quorum.Coordinator, opts ...quorum.Option) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := locks.Acquire(ctx, lock, opts...)
	ok(t, err)
	return lease
}

// rob frees the lock while its holder believes that it has it.
func rob(t *testing.T, locks *quorum.Coordinator) {
	t.Helper()
	if held, err := locks.ForceRelease(t.Context(), lock); err != nil || !held {
		t.Fatalf("force-release: held %v, %v", held, err)
	}
}

// The story of the document's first section, with leases and tokens as they are.
func TestAPausedHoldersLateWriteIsRefused(t *testing.T) {
	for _, loss := range []struct {
		how  string
		opts []quorum.Option
		end  func(*testing.T, *quorum.Coordinator, *quorum.Lease)
	}{
		{"force-released", nil, func(t *testing.T, locks *quorum.Coordinator, _ *quorum.Lease) { rob(t, locks) }},
		{
			"lease time over", []quorum.Option{quorum.WithLeaseTime(300 * time.Millisecond)},
			func(t *testing.T, _ *quorum.Coordinator, lease *quorum.Lease) {
				<-lease.Done()
				if err := lease.Err(); !errors.Is(err, quorum.ErrLost) {
					t.Fatalf("the lease ended with %v", err)
				}
			},
		},
	} {
		t.Run(loss.how, func(t *testing.T) {
			each(t, func(t *testing.T, db *database) {
				locks := coordinator(t)
				paused, resume := make(chan int64), make(chan struct{})
				var first errgroup.Group
				lease := acquire(t, locks, loss.opts...)
				first.Go(func() error {
					token := lease.Token() // together with what is read under it
					paused <- token
					<-resume
					return errors.Join(
						refusal(Update(t.Context(), db.DB, item, 5, token)),
						refusal(db.sell(t.Context(), token)))
				})
				old := <-paused
				loss.end(t, locks, lease)
				second := acquire(t, locks)
				if second.Token() <= old {
					t.Errorf("the second holder's token is %d, the first one's %d", second.Token(), old)
				}
				ok(t, Update(t.Context(), db.DB, item, initial, second.Token()))
				ok(t, db.sell(t.Context(), second.Token()))
				close(resume)
				ok(t, first.Wait())
				ok(t, db.sell(t.Context(), second.Token()))
				ok(t, second.Release(t.Context()))
				db.wantRow(t, initial-2, second.Token())
			})
		})
	}
}

// refusal turns the refusal that is wanted into no error, and its absence into one.
func refusal(err error) error {
	switch {
	case errors.Is(err, ErrStale):
		return nil
	case err == nil:
		return errors.New("a stale write was accepted")
	default:
		return err
	}
}

// The lease is looked at right before the write, and says that it has minutes left.
func TestLookingAtTheLeaseLetsAStaleWriteThrough(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		locks := coordinator(t)
		first := acquire(t, locks)
		rob(t, locks)
		second := acquire(t, locks)
		exec(t, db.DB, writeQuantity, 9, item)
		if first.Remaining() == 0 || first.Err() != nil {
			t.Fatalf("the first holder knows: %v", first.Err())
		}
		exec(t, db.DB, writeQuantity, 5, item) // the first one's
		db.wantRow(t, 5, 0)
		ok(t, second.Release(t.Context()))
	})
}

// Half of the holders free the lock before they write, so that their writes meet those of their successors. Whom a
// force-release meets it does not choose, so anybody may be refused but the newest.
func TestManyLeasesLeaveWhatTheNewestWrote(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		locks := coordinator(t)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var mu sync.Mutex
		var newest int64
		var workers errgroup.Group
		for n := range 4 {
			workers.Go(func() error {
				for round := range 4 {
					lease, err := locks.Acquire(ctx, lock)
					if err != nil {
						return err
					}
					mu.Lock()
					newest = max(newest, lease.Token())
					mu.Unlock()
					if (n+round)%2 == 0 {
						if _, err := locks.ForceRelease(ctx, lock); err != nil {
							return err
						}
					}
					if err := db.sell(ctx, lease.Token()); err != nil && !errors.Is(err, ErrStale) {
						return err
					}
					if err := lease.Release(ctx); err != nil && !errors.Is(err, quorum.ErrLost) {
						return err
					}
				}
				return nil
			})
		}
		ok(t, workers.Wait())
		orders := sold(t, db)
		if last := orders[len(orders)-1].token; last != newest || db.fence(t) != newest {
			t.Errorf("the last order is of %d and the fence at %d, the newest holder was %d", last, db.fence(t), newest)
		}
	})
}
