package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// acquiring starts an Acquire and returns its result.
func acquiring(c *quorum.Coordinator, ctx context.Context, name string, opts ...quorum.Option) <-chan result { //nolint:revive // reads like Acquire
	ch := make(chan result, 1)
	go func() {
		l, err := c.Acquire(ctx, name, opts...)
		ch <- result{l, err}
	}()
	return ch
}

type result struct {
	lease *quorum.Lease
	err   error
}

// must is the lease.
func (r result) must(t *testing.T) *quorum.Lease {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.lease
}

func TestWaiterIsWokenByTheRelease(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		l := mustAcquire(t, a, t.Context(), "stock")
		got := acquiring(b, t.Context(), "stock")
		time.Sleep(10*time.Second + 7*time.Millisecond)
		start := time.Now()
		mustRelease(t, l)
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("woken after %v", took)
		}
		mustRelease(t, r.lease)
		time.Sleep(time.Second)
		if n := cl.listening("stock"); n != 0 {
			t.Errorf("%d subscriptions left", n)
		}
	})
}

// A holder of {1,2,3} is never announced by 4 and 5.
func TestWakeCountsNodesFoundFreeAndNodesThatAnnounced(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		b := cl.client(quorum.Config{})
		for _, n := range cl.nodes[:3] {
			n.Redis().HSet("stock", "stranger:1", "1")
			n.Redis().SetTTL("stock", time.Hour)
		}
		got := acquiring(b, t.Context(), "stock")
		time.Sleep(5*time.Second + 3*time.Millisecond)
		start := time.Now()
		for _, n := range cl.nodes[:2] { // the third message is lost
			n.Redis().Del("stock")
			n.Redis().Publish(script.Channel("stock"), script.Free)
		}
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("woken after %v", took)
		}
	})
}

func TestWaiterGetsALockWhoseTTLRanOut(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Redis().HSet("stock", "dead:1", "1")
			n.Redis().SetTTL("stock", 10*time.Second)
		}
		c := cl.client(quorum.Config{})
		quorum.Fix(c, "waiter", func() float64 { return 0.999 }) // no poll happens to come at that moment
		start := time.Now()
		r := <-acquiring(c, t.Context(), "stock")
		if r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 10*time.Second+50*time.Millisecond {
			t.Errorf("had it after %v", took)
		}
	})
}

func TestWaiterWithoutAnyMessageStillGetsTheLock(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		own(cl.nodes, "stock", "stranger:1")
		got := acquiring(cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(10 * time.Second)
		for _, n := range cl.nodes { // released silently
			n.Redis().Del("stock")
		}
		start := time.Now()
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("polled after %v", took)
		}
	})
}

func TestWaitersOfOneProcessAreServedInOrder(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		l := mustAcquire(t, a, t.Context(), "stock")
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				ctx := t.Context()
				if i%5 == 4 { // some give up
					c, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					ctx = c
				}
				l, err := b.Acquire(ctx, "stock")
				if err != nil {
					wantIs(t, err, context.DeadlineExceeded)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				mustRelease(t, l)
			})
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		mustRelease(t, l)
		wg.Wait()
		if len(order) != 16 {
			t.Fatalf("%d had it: %v", len(order), order)
		}
		for i := 1; i < len(order); i++ {
			if order[i] < order[i-1] {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

func TestAcquireWaitsThroughAnOutage(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Kill()
		}
		got := acquiring(cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(time.Minute)
		for _, n := range cl.nodes {
			n.Start(false)
		}
		start := time.Now()
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

func TestFinishedContextTouchesNoNode(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no more"))
		before := cl.dials()
		for _, err := range []error{
			second(c.Acquire(ctx, "stock")), second(c.TryAcquire(ctx, "stock")),
			c.Do(ctx, "stock", func(context.Context) error { t.Error("ran"); return nil }),
			c.Mutex("stock").LockContext(ctx), c.Ping(ctx), second(c.ForceRelease(ctx, "stock")),
		} {
			wantIs(t, err, context.Canceled)
			wantIs(t, err, context.Cause(ctx))
			wantIsNot(t, err, quorum.ErrNotAcquired)
		}
		synctest.Wait()
		cl.untouched(before)
	})
}

func second[T any](_ T, err error) error { return err }

func TestCancelledWaiterLeavesNothingBehind(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		l := mustAcquire(t, a, t.Context(), "stock")
		ctx, cancel := context.WithCancel(t.Context())
		first, next := acquiring(b, ctx, "stock"), acquiring(b, t.Context(), "stock")
		time.Sleep(5 * time.Second)
		cancel()
		wantIs(t, (<-first).err, context.Canceled)
		mustRelease(t, l)
		r := <-next // the wake belongs to the name
		if r.err != nil {
			t.Fatal(r.err)
		}
		mustRelease(t, r.lease)
		time.Sleep(time.Second)
		if n := cl.listening("stock"); n != 0 || cl.present("stock") != 0 {
			t.Errorf("%d subscriptions are left, and the lock on %d nodes", n, cl.present("stock"))
		}
	})
}

// Who waits for very many names looks at each of them less often, and tries only when there is a reason.
func TestWaitingForManyNamesAsksNoMoreThanForAThousand(t *testing.T) {
	needsLong(t)
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		const names, seconds = 2000, 2
		for i := range names {
			for _, n := range cl.nodes {
				n.Redis().HSet(fmt.Sprint("stock-", i), "stranger:1", "1")
			}
		}
		c := cl.client(quorum.Config{})
		var all []<-chan result
		for i := range names {
			all = append(all, acquiring(c, t.Context(), fmt.Sprint("stock-", i)))
		}
		asked := func() (n int) {
			for _, node := range cl.nodes {
				n += node.Requests()
			}
			return n
		}
		time.Sleep(5 * time.Second)
		before := asked()
		time.Sleep(seconds * time.Second)
		// A look is two commands, and how long they are apart is drawn. Heartbeats are three in half a second.
		if n := asked() - before; n < 1500*seconds || n > 2800*seconds {
			t.Errorf("%d commands in %d s", n, seconds)
		}
		_ = c.Close()
		for _, got := range all {
			wantIs(t, (<-got).err, quorum.ErrClosed)
		}
	})
}

// Whoever had to wait, and has the lock, listens no longer than need be, though nobody else comes to this process.
func TestEndOfAWaitEndsTheSubscriptionWhileTheLockIsHeld(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{TTL: time.Minute}), cl.client(quorum.Config{TTL: time.Minute})
		l := mustAcquire(t, a, t.Context(), "stock")
		got := acquiring(b, t.Context(), "stock")
		time.Sleep(time.Second)
		mustRelease(t, l)
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		time.Sleep(2 * time.Second)
		if n := cl.listening("stock"); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
		// The process still knows that it has the lock itself.
		before := cl.nodes[0].Requests()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := b.Acquire(ctx, "stock")
		wantIs(t, err, context.DeadlineExceeded)
		if n := cl.nodes[0].Requests() - before; n != 0 {
			t.Errorf("%d commands for a lock that the process has itself", n)
		}
		mustRelease(t, r.lease)
	})
}
