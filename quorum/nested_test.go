package quorum_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// counts are the hold counts on the nodes, "" where nobody has the lock.
func (cl *cluster) counts(name, holder string) []string {
	counts := make([]string, len(cl.nodes))
	for i, n := range cl.nodes {
		counts[i] = n.Redis().HGet(name, holder)
	}
	return counts
}

func (cl *cluster) allCount(name, holder, want string) func() bool {
	return func() bool {
		for _, got := range cl.counts(name, holder) {
			if got != want {
				return false
			}
		}
		return true
	}
}

func TestNodesShowTheTrueHoldCount(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		inner := mustAcquire(t, c, outer.Context(t.Context()), "stock")
		innermost := mustAcquire(t, c, inner.Context(t.Context()), "stock")
		if innermost.Holder() != outer.Holder() || innermost.Token() != outer.Token() || outer.HoldCount() != 3 {
			t.Errorf("holder, token or count differ: %d holds", outer.HoldCount())
		}
		cl.eventually(time.Second, "count 3", cl.allCount("stock", outer.Holder(), "3"))
		mustRelease(t, outer) // in any order
		cl.eventually(time.Second, "count 2", cl.allCount("stock", outer.Holder(), "2"))
		wantIs(t, outer.Err(), quorum.ErrReleased)
		wantIs(t, outer.Release(t.Context()), quorum.ErrReleased)
		if inner.Err() != nil || inner.HoldCount() != 2 {
			t.Errorf("inner: %v, %d holds", inner.Err(), inner.HoldCount())
		}
		mustRelease(t, inner)
		mustRelease(t, innermost)
		cl.eventually(time.Second, "free", func() bool { return cl.present("stock") == 0 })
	})
}

func TestNestedHoldThatFailsLeavesTheOuterOneWhole(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		synctest.Wait()
		for _, n := range cl.nodes[:3] {
			n.LoseReplies(true) // the new count is written, and nobody hears of it
		}
		_, err := c.TryAcquire(outer.Context(t.Context()), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		for _, n := range cl.nodes[:3] {
			n.LoseReplies(false)
		}
		cl.eventually(5*time.Second, "count 1 again", cl.allCount("stock", outer.Holder(), "1"))
		if outer.Err() != nil || outer.HoldCount() != 1 {
			t.Errorf("outer: %v, %d holds", outer.Err(), outer.HoldCount())
		}
		cl.never(2*ttl, "the outer hold ends", func() bool { return outer.Err() != nil || cl.present("stock") != 5 })
		mustRelease(t, outer)
	})
}

func TestContextEndingInANestedAcquireLeavesTheOuterOneWhole(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		if err := outer.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		synctest.Wait()
		for _, n := range cl.nodes {
			n.Delay(100 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(outer.Context(t.Context()), 150*time.Millisecond)
		defer cancel()
		_, err := c.Acquire(ctx, "stock")
		wantIs(t, err, context.DeadlineExceeded)
		if !cl.allCount("stock", outer.Holder(), "2")() {
			t.Fatal("the new count was not written: the test shows nothing")
		}
		cl.eventually(time.Second, "count 1 again", cl.allCount("stock", outer.Holder(), "1"))
		mustRelease(t, outer)
	})
}

func TestManyNestedHoldsAtOnce(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		ctx := outer.Context(t.Context())
		cl.nodes[4].Hold()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 5 {
					l, err := c.Acquire(ctx, "stock")
					if err != nil {
						t.Error(err)
						return
					}
					if err := l.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		cl.nodes[4].Resume()
		cl.eventually(ttl, "count 1", cl.allCount("stock", outer.Holder(), "1"))
		mustRelease(t, outer)
	})
}

func TestWithoutLeaseIsAStranger(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		_, err := c.TryAcquire(quorum.WithoutLease(outer.Context(t.Context())), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		_, err = cl.client(quorum.Config{}).TryAcquire(outer.Context(t.Context()), "stock")
		wantIs(t, err, quorum.ErrNotAcquired) // another coordinator
		other := mustAcquire(t, c, outer.Context(t.Context()), "another name")
		if other.Holder() == outer.Holder() {
			t.Error("another name under the same holder")
		}
	})
}

func TestNestedHoldDoesNotExtendALeaseTime(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(10*time.Second))
		time.Sleep(5 * time.Second)
		before := outer.Remaining()
		inner := mustAcquire(t, c, outer.Context(t.Context()), "stock")
		if inner.Remaining() > before || cl.nodes[0].Redis().TTL("stock") > 6*time.Second {
			t.Errorf("extended from %v to %v, key lives %v", before, inner.Remaining(), cl.nodes[0].Redis().TTL("stock"))
		}
		<-outer.Done()
		<-inner.Done()
		wantIs(t, inner.Release(t.Context()), quorum.ErrLost)
		wantIs(t, outer.Release(t.Context()), quorum.ErrLost)
	})
}

// The old count that a failed nested hold restates reaches a node after the lease's end: it restores nothing there.
func TestRestatedCountThatArrivesAfterTheEndDoesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(2*time.Second))
		if err := outer.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		ctx := outer.Context(t.Context())
		time.Sleep(outer.Remaining() - 50*time.Millisecond)
		cl.nodes[0].Kill()
		cl.nodes[1].Kill()
		cl.nodes[2].Delay(20 * time.Millisecond)
		_, err := c.TryAcquire(ctx, "stock") // fails at once, while its request to node 2 is under way
		wantIs(t, err, quorum.ErrNoQuorum)
		time.Sleep(30 * time.Millisecond) // it has been there; when its answer is back, the old count follows
		if outer.Err() != nil || !cl.nodes[2].Redis().Del("stock") {
			t.Fatal("the test shows nothing")
		}
		cl.never(time.Second, "restored after the end", func() bool { return cl.nodes[2].Redis().Exists("stock") })
		wantIs(t, outer.Err(), quorum.ErrLost)
	})
}

// A context may outlive its lease, where somebody took its cancellation off.
func TestAcquireUnderAnEndedLeaseIsAFirstHold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		old := mustAcquire(t, c, t.Context(), "stock")
		ctx := context.WithoutCancel(old.Context(t.Context()))
		mustRelease(t, old)
		l := mustAcquire(t, c, ctx, "stock")
		if l.Err() != nil || l.Token() <= old.Token() || l.Holder() == old.Holder() {
			t.Errorf("%v, token %d after %d", l.Err(), l.Token(), old.Token())
		}
	})
}

// Of two holds that are added while the nodes are slow, each counts the other.
func TestHoldsAddedAtOnceCountEachOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		synctest.Wait()
		for _, n := range cl.nodes {
			n.Delay(20 * time.Millisecond)
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = mustAcquire(t, c, outer.Context(t.Context()), "stock") })
		}
		wg.Wait()
		if n := outer.HoldCount(); n != 3 {
			t.Errorf("%d holds", n)
		}
		cl.eventually(time.Second, "count 3", cl.allCount("stock", outer.Holder(), "3"))
		time.Sleep(ttl) // renewals
		cl.eventually(time.Second, "count 3 still", cl.allCount("stock", outer.Holder(), "3"))
	})
}
