package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

func TestAcquireFailsAtOnceOnErrorsThatWaitingCannotCure(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes[:3] {
			n.Redis().SetError("NOPERM this user has no permissions to run the 'evalsha' command")
		}
		start := time.Now()
		_, err := cl.client(quorum.Config{}).Acquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		if !contains(err.Error(), "NOPERM") {
			t.Error(err)
		}
	})
}

// A node that is down is the first to fail, and with it and one more there can be no quorum any more. What the others have to say
// is heard all the same.
func TestAcquireFailsAtOnceOnErrorsThatComeAfterTheDecision(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, n, func(t *testing.T, cl *cluster) {
				cl.nodes[0].Kill()
				for i, n := range cl.nodes[1:] {
					n.Redis().SetError("NOPERM this user has no permissions to run the 'evalsha' command")
					n.Delay(time.Duration(i+1) * time.Millisecond)
				}
				start := time.Now()
				_, err := cl.client(quorum.Config{}).Acquire(t.Context(), "stock", quorum.WithWaitTime(time.Minute))
				wantIs(t, err, quorum.ErrNoQuorum)
				if took := time.Since(start); took > time.Second {
					t.Errorf("took %v", took)
				}
				if !contains(err.Error(), cl.nodes[n-1].Addr()+" failed", "NOPERM") {
					t.Error(err)
				}
				cl.nodes[0].Start(true)
			})
		})
	}
}

// That two addresses lead to one server may turn out after the decision. It is no reason to call the lock busy.
func TestWaiterIsToldOfOneServerUnderTwoAddresses(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		own(cl.nodes, "stock", "stranger:1")
		cl.nodes[2].Delay(30 * time.Millisecond)
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(20 * time.Millisecond) // nodes 0 and 1 have answered
		for range 2 {
			for _, i := range []int{2, 1} {
				quorum.Checked(c, i, script.Record{Standing: script.StandingSettled, Run: "one", Now: cl.clock.Wall().UnixMicro()})
			}
		}
		if !quorum.SameServer(c) {
			t.Fatal("the test shows nothing: two are one server, and nobody says so")
		}
		select {
		case r := <-got:
			wantIs(t, r.err, quorum.ErrSameServer)
		case <-time.After(5 * time.Second): // it was found out again that they are not
			_ = c.Close()
			wantIs(t, (<-got).err, quorum.ErrClosed)
		}
	})
}

// relieving mends something as soon as a wait has ended.
type relieving struct{ mend func() }

func (relieving) TraceAcquireStart(ctx context.Context, _ quorum.TraceAcquireStartData) context.Context {
	return ctx
}
func (relieving) TraceAcquireEnd(context.Context, quorum.TraceAcquireEndData) {}
func (relieving) TraceWaitStart(ctx context.Context, _ quorum.TraceWaitStartData) context.Context {
	return ctx
}
func (r relieving) TraceWaitEnd(context.Context, quorum.TraceWaitEndData) { r.mend() }

// Whoever stood behind tries for itself: what ended the other's wait may have been mended since.
func TestErrorsThatWaitingCannotCureEndNobodyElsesWait(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		deny := func(text string) {
			for _, n := range cl.nodes[1:] {
				n.Redis().SetError(text)
			}
		}
		cl.nodes[0].Kill()
		cl.nodes[1].Delay(time.Millisecond)
		cl.nodes[2].Delay(2 * time.Millisecond)
		deny("NOPERM this user has no permissions to run the 'evalsha' command")
		c := cl.client(quorum.Config{Tracer: relieving{func() { deny("") }}})
		long := quorum.WithWaitTime(time.Minute)
		first, second := acquiring(c, t.Context(), "stock", long), acquiring(c, t.Context(), "stock", long)
		one, other := <-first, <-second
		if one.err == nil {
			one, other = other, one
		}
		wantIs(t, one.err, quorum.ErrNoQuorum)
		if other.err != nil {
			t.Fatalf("who came after %v: %v", one.err, other.err)
		}
		mustRelease(t, other.lease)
		cl.nodes[0].Start(true)
	})
}

// While the nodes that waiting cannot cure are no more than a quorum can spare, the others may come back.
func TestAcquireWaitsWhileThoseThatMayBeCuredAreAQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cl.nodes[0].Redis().SetError("NOPERM this user has no permissions to run the 'evalsha' command")
		cl.nodes[1].Kill()
		got := acquiring(cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(time.Minute)
		cl.nodes[1].Start(true)
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		cl.nodes[0].Redis().SetError("")
	})
}

func TestWaitTimeEndsTheWaitWithTheLastWord(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		l := mustAcquire(t, a, t.Context(), "stock")
		start := time.Now()
		_, err := b.Acquire(t.Context(), "stock", quorum.WithWaitTime(3*time.Second))
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		wantIs(t, err, quorum.ErrNotAcquired)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.Votes[0].Holder != l.Holder() {
			t.Errorf("no last word in %v", err)
		}
		_, err = b.Acquire(t.Context(), "stock", quorum.WithWaitTime(0))
		wantIs(t, err, quorum.ErrNotAcquired)

		for _, n := range cl.nodes[:3] {
			n.Kill()
		}
		_, err = b.Acquire(t.Context(), "stock", quorum.WithWaitTime(3*time.Second))
		wantIs(t, err, quorum.ErrNoQuorum)
		wantIsNot(t, err, quorum.ErrNotAcquired)
	})
}

// An error's votes are the caller's. Whoever waits behind has its own.
func TestVotesOfAnErrorAreItsOwn(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		for _, n := range cl.nodes[:3] {
			n.Redis().SetError("NOPERM this user has no permissions to run the 'evalsha' command")
			n.Delay(50 * time.Millisecond)
		}
		for _, n := range cl.nodes[3:] {
			n.Delay(200 * time.Millisecond) // what they say comes after the error
		}
		first := acquiring(c, t.Context(), "stock")
		time.Sleep(time.Millisecond)
		second := acquiring(c, t.Context(), "stock")
		time.Sleep(time.Millisecond)
		third := acquiring(c, t.Context(), "stock", quorum.WithWaitTime(250*time.Millisecond)) // which is over while the second asks
		var e *quorum.QuorumError
		if !errors.As((<-first).err, &e) {
			t.Fatal("no votes")
		}
		clear(e.Votes)
		if !errors.As((<-third).err, &e) {
			t.Fatal("no votes")
		}
		for i, v := range e.Votes {
			if v.Node != cl.nodes[i].Addr() {
				t.Errorf("vote %d is of %q", i, v.Node)
			}
		}
		wantIs(t, (<-second).err, quorum.ErrNoQuorum)
	})
}

// One node hangs, and the waiter may be looking at just that one when its context is cancelled, or the coordinator closed.
func TestWaiterThatLooksAtAHungNodeEndsAtOnce(t *testing.T) {
	for _, end := range []struct {
		name string
		what func(c *quorum.Coordinator, cancel func())
		want error
	}{
		{"cancelled", func(_ *quorum.Coordinator, cancel func()) { cancel() }, context.Canceled},
		{"closed", func(c *quorum.Coordinator, _ func()) { go c.Close() }, quorum.ErrClosed},
	} {
		for step := range 15 { // a look takes half a second there, and there is one every second or so
			t.Run(fmt.Sprint(end.name, step), func(t *testing.T) {
				inBubble(t, 3, func(t *testing.T, cl *cluster) {
					other, c := cl.client(quorum.Config{}), cl.client(quorum.Config{})
					mustAcquire(t, other, t.Context(), "stock")
					quorum.Fix(c, "waiter", func() float64 { return 0 }) // it looks at node 0
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					got := acquiring(c, ctx, "stock")
					time.Sleep(3 * time.Second)
					cl.nodes[0].Hold()
					time.Sleep(time.Duration(step) * 100 * time.Millisecond)
					start := time.Now()
					end.what(c, cancel)
					wantIs(t, (<-got).err, end.want)
					if took := time.Since(start); took > 0 {
						t.Errorf("after %v", took)
					}
					_ = c.Close()
					if took := time.Since(start); took > time.Second {
						t.Errorf("closed after %v, more than two node timeouts", took)
					}
					cl.nodes[0].Resume()
				})
			})
		}
	}
}

// The same where it is the wait time that ends.
func TestWaitTimeEndsALookAtAHungNode(t *testing.T) {
	for step := range 6 {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				other, c := cl.client(quorum.Config{}), cl.client(quorum.Config{})
				mustAcquire(t, other, t.Context(), "stock")
				quorum.Fix(c, "waiter", func() float64 { return 0 }) // it looks at node 0
				wait := 3*time.Second + time.Duration(step)*100*time.Millisecond
				start := time.Now()
				got := acquiring(c, t.Context(), "stock", quorum.WithWaitTime(wait))
				time.Sleep(2800 * time.Millisecond)
				cl.nodes[0].Hold()
				wantIs(t, (<-got).err, quorum.ErrNotAcquired)
				if took := time.Since(start); took > wait+time.Millisecond {
					t.Errorf("%v late", took-wait)
				}
				cl.nodes[0].Resume()
			})
		})
	}
}

// And where it ends before anything is known of the subscription.
func TestWaitTimeEndsTheWaitForASubscription(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		own(cl.nodes, "stock", "stranger:1")
		for _, n := range cl.nodes {
			n.Delay(30 * time.Millisecond) // the votes take 60 ms, and a new connection and what is asked there as much each
		}
		const wait = 100 * time.Millisecond
		start := time.Now()
		_, err := c.Acquire(t.Context(), "stock", quorum.WithWaitTime(wait))
		wantIs(t, err, quorum.ErrNotAcquired)
		if took := time.Since(start); took != wait {
			t.Errorf("%v late", took-wait)
		}
	})
}
