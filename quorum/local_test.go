package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// mustWait acquires with a wait.
func mustWait(t *testing.T, c *quorum.Coordinator, name string, opts ...quorum.Option) *quorum.Lease {
	t.Helper()
	l, err := c.Acquire(context.Background(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// requests are the commands that all nodes have carried out.
func (cl *cluster) requests() int {
	sum := 0
	for _, n := range cl.nodes {
		sum += n.Requests()
	}
	return sum
}

// listening are the subscriptions to a lock's channel, on all nodes.
func (cl *cluster) listening(name string) int {
	sum := 0
	for _, n := range cl.nodes {
		sum += n.Redis().PubSubNumSub(script.Channel(name))[script.Channel(name)]
	}
	return sum
}

// As long as a process has a lock itself, those of it who wait for it ask nobody, but for a look every second, one for all;
// each gets it right after the one before.
func TestWaitersOfALockOfOurOwnAskNobody(t *testing.T) {
	for title, late := range map[string]time.Duration{"at once": 0, "long after": 3 * time.Second} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				for _, n := range cl.nodes {
					n.Delay(time.Millisecond)
				}
				c := cl.client(quorum.Config{})
				l := mustWait(t, c, "stock")
				time.Sleep(late)
				synctest.Wait()
				before := cl.requests()
				var mu sync.Mutex
				var order []int
				var wg sync.WaitGroup
				for i := range 10 {
					wg.Go(func() {
						l := mustWait(t, c, "stock")
						mu.Lock()
						order = append(order, i)
						mu.Unlock()
						mustRelease(t, l)
					})
					synctest.Wait()
				}
				time.Sleep(5 * time.Second)
				if n := cl.requests() - before; n > 20 { // two commands a look, half a second apart at least
					t.Errorf("%d commands while everybody waited for ourselves", n)
				}
				start := time.Now()
				mustRelease(t, l)
				wg.Wait()
				if !slices.IsSorted(order) || len(order) != 10 {
					t.Errorf("served in the order %v", order)
				}
				// A release and an acquire each, two round trips of 2ms.
				if took := time.Since(start); took > 11*5*time.Millisecond {
					t.Errorf("ten in turn took %v", took)
				}
				if n := cl.listening("stock"); n != 0 {
					t.Errorf("%d subscriptions to hear of ourselves", n)
				}
			})
		})
	}
}

// A wait for a lock of our own that ends says who has it: every node's word, without having asked.
func TestEndOfAWaitForALockOfOurOwnHasEveryNodesWord(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustWait(t, c, "stock")
		_, err := c.Acquire(t.Context(), "stock", quorum.WithWaitTime(100*time.Millisecond))
		wantIs(t, err, quorum.ErrNotAcquired)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || len(votes.Votes) != 3 || votes.RetryAfter <= 0 || votes.RetryAfter > ttl {
			t.Fatalf("%+v", err)
		}
		for _, v := range votes.Votes {
			if v.Outcome != quorum.Held || v.Holder != l.Holder() || v.TTL <= 0 {
				t.Errorf("%+v, want the holder %s", v, l.Holder())
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = c.Acquire(ctx, "stock")
		wantIs(t, err, context.DeadlineExceeded)
		if !errors.As(err, &votes) || votes.Votes[0].Holder != l.Holder() {
			t.Errorf("%v", err)
		}
		mustRelease(t, l)
		mustRelease(t, mustWait(t, c, "stock"))
	})
}

// A node that the lock did not reach has no word to say about it.
func TestNodeThatALockOfOurOwnDidNotReachIsNotSaidToHoldIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cl.nodes[2].Kill()
		c := cl.client(quorum.Config{})
		l := mustWait(t, c, "stock")
		_, err := c.Acquire(t.Context(), "stock", quorum.WithWaitTime(100*time.Millisecond))
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.Votes[0].Holder != l.Holder() || votes.Votes[2].Outcome != quorum.Unknown || votes.Votes[2].Holder != "" {
			t.Errorf("%v", err)
		}
		mustRelease(t, l)
	})
}

// One node has let go of the lock. As long as a quorum may have it yet, there is nothing to ask for.
func TestWaiterOfALockOfOurOwnWaitsUntilAQuorumHasLetGo(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustWait(t, c, "stock")
		synctest.Wait()
		got := acquiring(c, t.Context(), "stock")
		synctest.Wait()
		cl.nodes[1].Hold()
		cl.nodes[2].Hold()
		go func() { _ = l.Release(context.Background()) }()
		synctest.Wait()
		if who := cl.holders("stock"); who[0] != "" {
			t.Errorf("held by %s on the node that has let go, before the others have", who[0])
		}
		cl.nodes[1].Resume()
		cl.nodes[2].Resume()
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		mustRelease(t, r.lease)
	})
}

// However the lease ends, the next one of the process gets its turn.
func TestEndOfALeaseOfOurOwnLetsTheNextIn(t *testing.T) {
	for title, tt := range map[string]struct {
		end    func(t *testing.T, cl *cluster, l *quorum.Lease)
		within time.Duration
		opts   []quorum.Option
	}{
		"its lease time is over": {
			func(*testing.T, *cluster, *quorum.Lease) {}, 2100 * time.Millisecond,
			[]quorum.Option{quorum.WithLeaseTime(2 * time.Second)},
		},
		"it was force-released": {
			func(t *testing.T, cl *cluster, _ *quorum.Lease) {
				if ok, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); !ok || err != nil {
					t.Error(ok, err)
				}
			}, ttl, nil, // found out at the next renewal
		},
		"no node answered its release": {
			func(t *testing.T, cl *cluster, l *quorum.Lease) {
				for _, n := range cl.nodes {
					n.Kill()
				}
				wantIs(t, l.Release(t.Context()), quorum.ErrNoQuorum)
				for _, n := range cl.nodes {
					n.Start(true)
				}
			}, 2 * time.Second, nil,
		},
		"it was released while a node hung": {
			func(t *testing.T, cl *cluster, l *quorum.Lease) {
				cl.nodes[0].Hold()
				t.Cleanup(cl.nodes[0].Resume)
				mustRelease(t, l)
			}, 50 * time.Millisecond, nil,
		},
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				c := cl.client(quorum.Config{})
				l := mustWait(t, c, "stock", tt.opts...)
				got := acquiring(c, t.Context(), "stock")
				synctest.Wait()
				start := time.Now()
				tt.end(t, cl, l)
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				if took := time.Since(start); took > tt.within {
					t.Errorf("had it after %v, want at most %v", took, tt.within)
				}
				mustRelease(t, r.lease)
			})
		})
	}
}

// A waiter of a lock of our own that gives up leaves the line to the others.
func TestWaiterOfALockOfOurOwnMayGiveUp(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustWait(t, c, "stock")
		ctx, cancel := context.WithCancel(t.Context())
		first := acquiring(c, ctx, "stock")
		synctest.Wait()
		second := acquiring(c, t.Context(), "stock")
		synctest.Wait()
		cancel()
		wantIs(t, (<-first).err, context.Canceled)
		mustRelease(t, l)
		r := <-second
		if r.err != nil {
			t.Fatal(r.err)
		}
		mustRelease(t, r.lease)
	})
}

// A line is kept for half a second after the last of it has left, and not at all after Close; its subscription too.
func TestNothingIsLeftOfALine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		for _, name := range []string{"stock", "alone"} {
			l := mustWait(t, a, name)
			if name == "stock" {
				got := acquiring(b, t.Context(), name)
				time.Sleep(time.Second)
				mustRelease(t, l)
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				l = r.lease
				if cl.listening(name) == 0 {
					t.Error("the line of a contended lock was given up at once: whoever takes it again has to subscribe again")
				}
			}
			mustRelease(t, l)
		}
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		if n := quorum.LinesOf(a) + quorum.LinesOf(b); n != 0 || cl.listening("stock") != 0 {
			t.Errorf("%d lines and %d subscriptions are left", n, cl.listening("stock"))
		}

		l := mustWait(t, a, "stock")
		got := acquiring(b, t.Context(), "stock")
		time.Sleep(time.Second)
		mustRelease(t, l)
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		for _, c := range []*quorum.Coordinator{a, b} {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if n := quorum.LinesOf(c); n != 0 {
				t.Errorf("after Close %d lines are left", n)
			}
		}
		synctest.Wait()
		if n := cl.listening("stock"); n != 0 {
			t.Errorf("after Close %d subscriptions are left", n)
		}
	})
}

// A lock that nobody else wants leaves nothing behind in the process, not even for a moment.
func TestUncontendedLockLeavesNoLine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		for i := range 10 {
			l, err := c.Acquire(t.Context(), fmt.Sprint("stock ", i))
			if err != nil {
				t.Fatal(err)
			}
			mustRelease(t, l)
			synctest.Wait()
			if n := quorum.LinesOf(c); n != 0 {
				t.Fatalf("%d lines are left", n)
			}
		}
	})
}

// An operator frees a lock, and the process that has it will not know before it renews. Its own waiters need not wait for
// that.
func TestLocalHoldThatWasForceReleasedHoldsUpNobody(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		first := mustWait(t, c, "stock", quorum.WithLeaseTime(time.Hour)) // it never renews
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(10 * time.Second)
		if _, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("had it after %v", took)
		}
		if r.lease.Token() <= first.Token() {
			t.Errorf("token %d after %d", r.lease.Token(), first.Token())
		}
		mustRelease(t, r.lease)
	})
}
