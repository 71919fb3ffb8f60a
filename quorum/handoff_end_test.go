package quorum_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// What ends with a hand-off, and what a hand-off must not outlast.

// The end of a hold is the end of whoever has it by then.
func TestWhoWasHandedAHoldSeesItsEnd(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 2)
		l := r.wantHandedOn(r.wantNew(r.first))
		ctx := l.Context(t.Context())
		for _, n := range cl.nodes {
			n.Kill()
		}
		<-l.Done()
		wantIs(t, l.Err(), quorum.ErrLost)
		wantIs(t, context.Cause(ctx), quorum.ErrLost)
		synctest.Wait()
		if n := quorum.HoldsOf(r.c); n != 0 {
			t.Errorf("%d holds are left", n)
		}
		for _, n := range cl.nodes {
			n.Start(true)
		}
		r.wg.Wait()
	})
}

// A context of a lease that was handed on gives no right to nest: the lock is somebody else's.
func TestContextOfAHoldThatWasHandedOnIsAStrangers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 2)
		l := r.wantNew(r.first)
		ctx := l.Context(t.Context())
		next := r.wantHandedOn(l)
		wantIs(t, context.Cause(ctx), quorum.ErrReleased)
		stray := context.WithoutCancel(ctx) // it lives on, and carries the lease
		if _, err := r.c.TryAcquire(stray, "stock"); err == nil {
			t.Error("two holders")
		}
		r.wait(stray, 9)
		cl.never(time.Second, "two holders", func() bool { return len(r.next) > 0 })
		r.end(r.wantNew(next))
	})
}

// Who was handed a hold nests in it, as ever, and it is handed on when all of it has been given back.
func TestHoldIsHandedOnWithItsLastHandle(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 3)
		outer := r.wantHandedOn(r.wantNew(r.first))
		inner := mustAcquire(t, r.c, outer.Context(t.Context()), "stock")
		if inner.Token() != outer.Token() || outer.HoldCount() != 2 {
			t.Errorf("token %d, hold count %d", inner.Token(), outer.HoldCount())
		}
		mustRelease(t, outer)
		cl.never(10*time.Millisecond, "two holders", func() bool { return len(r.next) > 0 })
		r.end(r.wantHandedOn(inner))
	})
}

// A nested hold that is under way when the hold is handed on is none.
func TestNestedHoldDoesNotOutliveAHandOff(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 2)
		l := r.wantNew(r.first)
		ctx := context.WithoutCancel(l.Context(t.Context()))
		nested := make(chan error, 1)
		r.wg.Go(func() {
			_, err := r.c.TryAcquire(ctx, "stock")
			nested <- err
		})
		synctest.Wait() // the nodes are being asked
		mustRelease(t, l)
		leg := <-r.next
		wantIs(t, <-nested, quorum.ErrReleased)
		cl.eventually(time.Second, "one hold", cl.allCount("stock", leg.lease.Holder(), "1"))
		if n := leg.lease.HoldCount(); n != 1 {
			t.Errorf("hold count %d", n)
		}
		r.end(leg.lease)
	})
}

// Nor does one that waits for nodes which do not answer, and is told to whom it nests in is over, and not that the lock was
// lost.
func TestNestedHoldThatWaitsEndsWithAHandOff(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 2)
		l := r.wantNew(r.first)
		ctx := context.WithoutCancel(l.Context(t.Context()))
		for _, n := range cl.nodes {
			n.Kill()
		}
		nested := make(chan error, 1)
		start := time.Now()
		r.wg.Go(func() {
			_, err := r.c.Acquire(ctx, "stock")
			nested <- err
		})
		synctest.Wait()
		mustRelease(t, l)
		leg := <-r.next
		wantIs(t, <-nested, quorum.ErrReleased)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it waited for %v", took)
		}
		for _, n := range cl.nodes {
			n.Start(true)
		}
		_ = leg.lease.Release(t.Context())
		r.wg.Wait()
	})
}

// What was under way for a handle, or is asked of it later, does not tell of the hold that is somebody else's now.
func TestHandleOfAHoldThatWasHandedOnKnowsNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 2)
		l := r.wantNew(r.first)
		renewed := make(chan error, 1)
		r.wg.Go(func() { renewed <- l.Renew(context.Background()) })
		synctest.Wait() // the nodes are being asked
		mustRelease(t, l)
		next := (<-r.next).lease
		wantIs(t, <-renewed, quorum.ErrReleased)
		wantIs(t, l.Renew(t.Context()), quorum.ErrReleased)
		for _, v := range l.Votes() {
			if v != (quorum.Vote{Node: v.Node}) {
				t.Errorf("it says %+v", v)
			}
		}
		if v := next.Votes()[0]; v.Outcome != quorum.Granted || v.TTL <= 0 {
			t.Errorf("whoever has it says %+v", v)
		}
		r.end(next)
	})
}

// Who asks for the lock after it was force-released here must not be handed what was.
func TestHoldThatWasForceReleasedHereIsNotHandedOn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		other := cl.warmClient(quorum.Config{})
		r := cl.relay(quorum.Config{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		r.wait(ctx, 1)
		l := r.wantNew(r.first)
		if held, err := r.c.ForceRelease(t.Context(), "stock"); !held || err != nil {
			t.Fatal(held, err)
		}
		cancel()
		<-r.next // its token is left over
		r.wait(t.Context(), 2)
		theirs := mustAcquire(t, other, t.Context(), "stock")
		_ = l.Release(t.Context())
		cl.never(time.Second, "two holders", func() bool { return len(r.next) > 0 })
		mustRelease(t, theirs)
		r.end((<-r.next).lease)
	})
}

// The wait of the next one ends at the moment at which the hold is handed to it: then it is handed to the one after.
func TestHoldThatNobodyTakesIsHandedOnOrGivenBack(t *testing.T) {
	for title, others := range map[string]int{"somebody is behind": 1, "nobody is behind": 0} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				r := cl.relay(quorum.Config{}, 1)
				ctx, cancel := context.WithCancel(t.Context())
				r.wait(ctx, 1)
				for i := range others {
					r.wait(t.Context(), 2+i)
				}
				l := r.wantNew(r.first)
				cancel()
				mustRelease(t, l) // the waiter has not run since
				leg := <-r.next
				wantIs(t, leg.err, context.Canceled)
				if others > 0 {
					if leg = <-r.next; leg.err != nil || leg.i != 2 {
						t.Fatalf("%+v", leg)
					}
					r.end(leg.lease)
				}
				cl.eventually(time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 && quorum.HoldsOf(r.c) == 0 })
				r.wg.Wait()
			})
		})
	}
}

// Close finds what was handed on.
func TestCloseGivesBackWhatWasHandedOn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 3)
		l := r.wantHandedOn(r.wantNew(r.first))
		if err := r.c.Close(); err != nil {
			t.Error(err)
		}
		wantIs(t, l.Err(), quorum.ErrReleased)
		wantIs(t, (<-r.next).err, quorum.ErrClosed)
		r.wg.Wait()
		if n := cl.present("stock"); n != 0 {
			t.Errorf("it is left on %d nodes", n)
		}
	})
}

// panicking is a tracer that panics when a hold ends, once it is armed.
type panicking struct{ armed *atomic.Bool }

func (panicking) TraceAcquireStart(ctx context.Context, _ quorum.TraceAcquireStartData) context.Context {
	return ctx
}
func (panicking) TraceAcquireEnd(context.Context, quorum.TraceAcquireEndData) {}
func (panicking) TraceHoldStart(ctx context.Context, _ quorum.TraceHoldStartData) context.Context {
	return ctx
}
func (p panicking) TraceHoldEnd(context.Context, quorum.TraceHoldEndData) {
	if p.armed.Load() {
		panic("tracer")
	}
}

// recovered releases as a server does that recovers from the panics of its handlers.
func recovered(t *testing.T, l *quorum.Lease) {
	t.Helper()
	defer func() {
		if p := recover(); p != "tracer" {
			t.Errorf("recovered %v, and the test shows nothing", p)
		}
	}()
	_ = l.Release(t.Context())
}

// A tracer that panics costs nobody the lock: neither the waiter to whom it is handed over, nor those who wait elsewhere.
func TestTracerThatPanicsInReleaseBlocksNobody(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		var armed atomic.Bool
		r := cl.relay(quorum.Config{Tracer: panicking{&armed}}, 2)
		l := r.wantNew(r.first)
		synctest.Wait()
		armed.Store(true)
		recovered(t, l)
		var next *quorum.Lease
		select {
		case leg := <-r.next:
			if next = leg.lease; leg.err != nil || next.Holder() != l.Holder() {
				t.Fatalf("not handed over: %v", leg.err)
			}
		case <-time.After(ttl):
			t.Fatal("the waiter that was promised the lock never got it")
		}
		elsewhere := acquiring(cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(time.Second)
		start := time.Now()
		recovered(t, next)
		if got := <-elsewhere; got.err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %v", got.err, time.Since(start))
		} else {
			mustRelease(t, got.lease)
		}
		r.wg.Wait()
		if n := quorum.HoldsOf(r.c); n != 0 {
			t.Errorf("%d holds are left", n)
		}
	})
}
