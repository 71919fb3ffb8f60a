package certmagiclock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/certmagiclock"
)

func TestSectionsOfOneNameExcludeEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		c := cl.client()
		// Two servers, a second storage in one of them, and two goroutines in each.
		storages := []*certmagiclock.Storage{cl.storageOn(c), cl.storageOn(c), cl.storage()}
		var group sync.WaitGroup
		count := 0
		for _, s := range append(storages, storages...) {
			group.Go(func() {
				for range 5 {
					if err := s.Lock(t.Context(), name); err != nil {
						t.Error(err)
						return
					}
					before := count
					time.Sleep(time.Second)
					count = before + 1
					if err := s.Unlock(t.Context(), name); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if count != 30 {
			t.Errorf("30 sections left a count of %d", count)
		}
	})
}

func TestTryLockSaysWhetherItHasTheLock(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.storage(), cl.storage()
		try := func(s *certmagiclock.Storage, want bool) {
			t.Helper()
			if got, err := s.TryLock(t.Context(), name); got != want || err != nil {
				t.Fatalf("%v, %v; want %v", got, err, want)
			}
		}
		try(a, true)
		try(a, false)
		try(b, false)
		must(t, a.Unlock(t.Context(), name))
		try(b, true)
		must(t, b.Unlock(t.Context(), name))
		for _, n := range cl.nodes[:3] {
			n.Kill()
		}
		got, err := a.TryLock(t.Context(), name)
		wantIs(t, err, quorum.ErrNoQuorum)
		if got {
			t.Error("locked without a quorum")
		}
	})
}

func TestLockEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.storage(), cl.storage()
		must(t, a.Lock(t.Context(), name))
		for _, s := range []*certmagiclock.Storage{a, b} { // in this process, and in another
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wantIs(t, s.Lock(ctx, name), context.DeadlineExceeded)
			cancel()
		}
		must(t, a.Unlock(t.Context(), name))
		must(t, b.Lock(t.Context(), name))
		must(t, b.Unlock(t.Context(), name))
	})
}

func TestLockUnderAContextWithALeaseDoesNotNest(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		c := cl.client()
		lease, err := c.Acquire(t.Context(), certmagiclock.DefaultPrefix+name)
		must(t, err)
		if got, err := cl.storageOn(c).TryLock(lease.Context(t.Context()), name); got || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		must(t, lease.Release(t.Context()))
	})
}

func TestSectionHereWaitsForTheOneThatLostItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		s := cl.storage()
		must(t, s.Lock(t.Context(), name))
		inside := make(chan error, 1)
		go func() { inside <- s.Lock(t.Context(), name) }()
		cl.steal()
		synctest.Wait()
		select {
		case err := <-inside:
			t.Fatalf("two are inside, and the Unlock of one would be that of both: %v", err)
		default:
		}
		must(t, s.Unlock(t.Context(), name)) // it is not held any more: nothing went wrong in unlocking
		if !cl.log.has("lease of a certificate lock lost") {
			t.Error("nobody was told of the loss")
		}
		must(t, <-inside)
		must(t, s.Unlock(t.Context(), name))
	})
}

func TestUnlockOfWhatIsNotLockedIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		s := cl.storage()
		for _, unlock := range []func() error{
			func() error { return s.Unlock(t.Context(), name) },
			func() error { return s.RenewLockLease(t.Context(), name, time.Minute) },
		} {
			if err := unlock(); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("never locked: %v", err)
			}
		}
		must(t, s.Lock(t.Context(), name))
		must(t, s.Unlock(t.Context(), name))
		if err := s.Unlock(t.Context(), name); err == nil {
			t.Error("a second Unlock is none")
		}
	})
}

func TestRenewalOfALostLeaseTakesTheLockAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.storage(), cl.storage()
		must(t, a.Lock(t.Context(), name))
		must(t, a.RenewLockLease(t.Context(), name, time.Minute))
		cl.steal()
		must(t, b.Lock(t.Context(), name))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantIs(t, a.RenewLockLease(ctx, name, time.Minute), context.DeadlineExceeded)

		again := make(chan error, 1)
		go func() { again <- a.RenewLockLease(t.Context(), name, time.Minute) }()
		time.Sleep(time.Minute)
		select {
		case err := <-again:
			t.Fatalf("renewed while another has it: %v", err)
		default:
		}
		must(t, b.Unlock(t.Context(), name))
		must(t, <-again)
		if got, err := b.TryLock(t.Context(), name); got || err != nil {
			t.Errorf("the lock that was taken again is not held: %v, %v", got, err)
		}
		must(t, a.Unlock(t.Context(), name))
		must(t, b.Lock(t.Context(), name))
		must(t, b.Unlock(t.Context(), name))
	})
}

func TestUnlockDuringARenewalLeavesNothingLocked(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.storage(), cl.storage()
		must(t, a.Lock(t.Context(), name))
		cl.steal()
		must(t, b.Lock(t.Context(), name))
		renewal := make(chan error, 1)
		go func() { renewal <- a.RenewLockLease(t.Context(), name, time.Minute) }()
		time.Sleep(time.Second)
		must(t, a.Unlock(t.Context(), name))
		must(t, b.Unlock(t.Context(), name))
		wantIs(t, <-renewal, quorum.ErrReleased)
		time.Sleep(moment)
		if got, err := b.TryLock(t.Context(), name); !got {
			t.Fatalf("%v, %v", got, err)
		}
		must(t, b.Unlock(t.Context(), name))
	})
}

func TestOutageDuringARenewalIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		s := cl.storage()
		must(t, s.Lock(t.Context(), name))
		for _, n := range cl.nodes[:3] {
			n.Kill()
		}
		wantIs(t, s.RenewLockLease(t.Context(), name, time.Minute), quorum.ErrNoQuorum)
		if err := s.Unlock(t.Context(), name); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("Unlock that no quorum confirmed: %v", err)
		}
	})
}

func TestClosedCoordinatorHasUnlocked(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		c := cl.client()
		s := cl.storageOn(c)
		must(t, s.Lock(t.Context(), name))
		must(t, c.Close())
		must(t, s.Unlock(t.Context(), name))
		wantIs(t, s.Lock(t.Context(), name), quorum.ErrClosed)
	})
}
