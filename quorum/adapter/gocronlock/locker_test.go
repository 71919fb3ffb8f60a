package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/gocronlock"
)

func TestRunsOfOneJobBeginMinHoldApart(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.locker(), cl.locker()
		must(t, run(t, a, "report", time.Millisecond))
		begun := time.Now()
		time.Sleep(hold - 10*moment)
		_, err := b.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNotAcquired)
		must(t, run(t, b, "other", time.Millisecond)) // another job is another lock
		time.Sleep(time.Until(begun.Add(hold + moment)))
		must(t, run(t, b, "report", time.Millisecond))
		_, err = a.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNotAcquired)
		must(t, b.Drain(t.Context()))
	})
}

func TestLockOfALongJobIsFreeWhenItIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.locker(), cl.locker()
		lock, err := a.Lock(t.Context(), "report")
		must(t, err)
		time.Sleep(3 * ttl) // renewed meanwhile
		_, err = b.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNotAcquired)
		must(t, lock.Unlock(t.Context()))
		must(t, run(t, b, "report", hold))
	})
}

func TestJobThatStillRunsHereIsNotRunHereOnceMore(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l := cl.locker()
		lock, err := l.Lock(t.Context(), "report")
		must(t, err)
		time.Sleep(2 * hold)
		_, err = l.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNotAcquired)

		// And no sooner if it has lost its lease: the nodes would grant it again.
		cl.forceRelease("report", l)
		_, err = l.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNotAcquired)
		wantIs(t, lock.Unlock(t.Context()), quorum.ErrLost)
		if !cl.log.has("lease of a job lost") {
			t.Error("nobody was told of the loss")
		}
		must(t, run(t, l, "report", hold))
	})
}

func TestTickThatComesTooSoonIsSkippedAndLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l := cl.locker()
		must(t, run(t, l, "report", time.Millisecond))
		time.Sleep(hold / 2)
		_, err := l.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNotAcquired)
		if !strings.Contains(err.Error(), "MinHold is 5s") || !cl.log.has("comes too soon") {
			t.Errorf("%v, and the log does not say it", err)
		}
		must(t, l.Drain(t.Context()))
	})
}

func TestRunUnderAContextWithALeaseDoesNotNest(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		c := cl.client()
		lease, err := c.Acquire(t.Context(), gocronlock.DefaultPrefix+"report")
		must(t, err)
		_, err = cl.lockerOn(c).Lock(lease.Context(t.Context()), "report")
		wantIs(t, err, quorum.ErrNotAcquired)
		must(t, lease.Release(t.Context()))
	})
}

func TestShutdownGivesTheLockBack(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		a, b := cl.locker(), cl.locker()
		lock, err := a.Lock(t.Context(), "report")
		must(t, err)
		time.Sleep(2 * hold)
		for _, n := range cl.nodes {
			n.Delay(moment / 10) // or the answers may be there before anybody looks at the context
		}
		wantIs(t, lock.Unlock(over()), context.Canceled) // sent, and not waited for
		time.Sleep(moment)
		must(t, run(t, b, "report", hold))
	})
}

func TestDrainWaitsForTheRestOfMinHold(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		c := cl.client()
		a, b := cl.lockerOn(c), cl.locker()
		must(t, a.Drain(over())) // nothing to wait for
		lock, err := a.Lock(t.Context(), "report")
		must(t, err)
		begun := time.Now()
		must(t, a.Drain(over())) // a job that runs is the scheduler's to wait for
		must(t, lock.Unlock(over()))
		if err := a.Drain(over()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"report"`) {
			t.Errorf("Drain with a context that is over: %v", err)
		}
		must(t, a.Drain(t.Context()))
		if took := time.Since(begun); took < hold || took > hold+moment {
			t.Errorf("drained after %v, want %v", took, hold)
		}
		must(t, c.Close())
		must(t, run(t, b, "report", hold))
	})
}

func TestNothingIsKeptForAClosedCoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		c := cl.client()
		l := cl.lockerOn(c)
		must(t, run(t, l, "report", time.Millisecond))
		must(t, c.Close())
		begun := time.Now()
		must(t, l.Drain(t.Context()))
		if took := time.Since(begun); took > moment {
			t.Errorf("drained after %v, though the lock was free", took)
		}
		_, err := l.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrClosed)
	})
}

func TestSecondUnlockDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l := cl.locker()
		lock, err := l.Lock(t.Context(), "report")
		must(t, err)
		if l.Lease("report") == nil {
			t.Error("no lease while the job runs")
		}
		must(t, lock.Unlock(t.Context()))
		if l.Lease("report") != nil {
			t.Error("a lease though the job is done")
		}
		wantIs(t, lock.Unlock(t.Context()), quorum.ErrReleased)
		must(t, l.Drain(t.Context()))
		second, err := l.Lock(t.Context(), "report")
		must(t, err)
		wantIs(t, lock.Unlock(t.Context()), quorum.ErrReleased)
		if l.Lease("report") == nil {
			t.Error("the second run lost its lock to the first one's Unlock")
		}
		time.Sleep(hold)
		must(t, second.Unlock(t.Context()))
	})
}

// A process that is cut off from all nodes looks like one that died.
func TestTicksAreRunElsewhereATTLAfterADeath(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		cable := &faultnet.Cable{}
		dead, alive := cl.lockerOn(cl.clientOn(cable)), cl.locker()
		lock, err := dead.Lock(t.Context(), "report")
		must(t, err)
		for _, n := range cl.nodes {
			cable.Cut(n)
		}
		begun := time.Now()
		for {
			next, err := alive.Lock(t.Context(), "report")
			if err == nil {
				must(t, next.Unlock(t.Context()))
				break
			}
			wantIs(t, err, quorum.ErrNotAcquired)
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took < ttl-moment || took > ttl+time.Second {
			t.Errorf("run elsewhere after %v, want %v", took, ttl)
		}
		if err := dead.Lease("report").Err(); !errors.Is(err, quorum.ErrLost) {
			t.Errorf("the lease of the dead: %v", err)
		}
		wantIs(t, lock.Unlock(t.Context()), quorum.ErrLost)
		must(t, alive.Drain(t.Context()))
	})
}

func TestOutageIsNoQuorum(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		l := cl.locker()
		for _, n := range cl.nodes[:3] {
			n.Kill()
		}
		_, err := l.Lock(t.Context(), "report")
		wantIs(t, err, quorum.ErrNoQuorum)
		for _, n := range cl.nodes[:3] {
			n.Start(true)
		}
		time.Sleep(time.Second)
		must(t, run(t, l, "report", hold)) // the attempt that failed left nothing behind here
	})
}

func TestBadConfigurationIsRefused(t *testing.T) {
	if _, err := gocronlock.New(nil, gocronlock.Config{}); err == nil || !strings.Contains(err.Error(), "no locks") {
		t.Errorf("no locks: %v", err)
	}
	_, err := gocronlock.New(&quorum.Coordinator{}, gocronlock.Config{MinHold: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "-1s is negative") {
		t.Errorf("negative MinHold: %v", err)
	}
}
