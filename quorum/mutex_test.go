package quorum_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

func TestMutexStandsInForASyncMutex(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		var account struct {
			sync.Locker
			balance int
		}
		account.Locker = cl.client(quorum.Config{}).Mutex("account")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				account.Lock()
				defer account.Unlock()
				before := account.balance
				time.Sleep(time.Millisecond)
				account.balance = before + 1
			})
		}
		wg.Wait()
		if account.balance != 20 {
			t.Errorf("balance %d", account.balance)
		}
	})
}

func TestMutexesOfTwoClientsExcludeEachOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}).Mutex("account"), cl.client(quorum.Config{}).Mutex("account")
		if !a.TryLock() || b.TryLock() || a.TryLock() {
			t.Fatal("TryLock")
		}
		if a.Lease() == nil || b.Lease() != nil {
			t.Error("Lease")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantIs(t, b.LockContext(ctx), context.DeadlineExceeded)
		a.Unlock()
		b.Lock()
		if err := b.UnlockContext(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestMutexDoesNotNest(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "account")
		ctx, cancel := context.WithTimeout(l.Context(t.Context()), 3*time.Second)
		defer cancel()
		wantIs(t, c.Mutex("account").LockContext(ctx), context.DeadlineExceeded)
	})
}

func TestUnlockOfAnUnlockedMutexPanics(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, cl *cluster) {
		m := cl.client(quorum.Config{}).Mutex("account")
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
			m.Lock()   // and it is none the worse for it
			m.Unlock() //nolint:staticcheck // that it can be locked is the point
		}()
		m.Unlock()
	})
}

func TestLockKeepsTryingThroughAnOutage(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		m := cl.client(quorum.Config{}).Mutex("account")
		for _, n := range cl.nodes {
			n.Redis().SetError("NOPERM not yet")
		}
		locked := make(chan struct{})
		go func() { m.Lock(); close(locked) }()
		time.Sleep(time.Minute)
		for _, n := range cl.nodes {
			n.Redis().SetError("")
		}
		<-locked
		m.Unlock()
		if !contains(cl.log.String(), "cannot be locked", "NOPERM not yet") {
			t.Error("an operator is not told")
		}
	})
}

// The lease is lost under a goroutine that does not notice: no other goroutine of the process gets in before it left.
func TestMutexStaysLockedInTheProcessAfterALoss(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		m := cl.client(quorum.Config{}).Mutex("account", quorum.WithLeaseTime(time.Second))
		m.Lock()
		lease := m.Lease()
		<-lease.Done()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		wantIs(t, m.LockContext(ctx), context.DeadlineExceeded)
		m.Unlock()
		if !contains(cl.log.String(), "unlock", "lease lost") {
			t.Errorf("log: %s", cl.log)
		}
		m.Lock()
		<-m.Lease().Done()
		wantIs(t, m.UnlockContext(t.Context()), quorum.ErrLost)
	})
}

func TestLockOfAClosedCoordinatorPanics(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		m := c.Mutex("account")
		held := mustAcquire(t, c, t.Context(), "account")
		panicked := make(chan any)
		go func() {
			defer func() { panicked <- recover() }()
			m.Lock()
		}()
		synctest.Wait()
		_ = c.Close()
		if <-panicked == nil {
			t.Error("no panic")
		}
		wantIs(t, held.Err(), quorum.ErrReleased)
		if m.TryLock() {
			t.Error("locked")
		}
	})
}

func TestMutexRefusesAWaitTime(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		m := cl.client(quorum.Config{}).Mutex("stock", quorum.WithWaitTime(time.Second))
		if err := m.LockContext(t.Context()); err == nil || !contains(err.Error(), "WithWaitTime", "mutex") {
			t.Errorf("got %v", err)
		}
		for name, lock := range map[string]func(){"Lock": m.Lock, "TryLock": func() { m.TryLock() }} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s did not panic", name)
					}
				}()
				lock()
			}()
		}
	})
}
