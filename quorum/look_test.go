package quorum_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// A node begins to hang, and it is the one that a waiter looks at: where others wait, too, and so it looks before it tries, and where it
// has just given the lock back to somebody. The lock goes on to it all the same, and not after that node's timeout.
func TestWaiterDoesNotWaitForANodeThatHangs(t *testing.T) {
	const first, last = 0.01, 0.99 // of those who wait; and the first looks at node 0
	for title, again := range map[string]bool{"among others": false, "after its turn": true} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 5, func(t *testing.T, cl *cluster) {
				for _, n := range cl.nodes {
					n.Delay(time.Millisecond)
				}
				c, other, third := cl.warmClient(quorum.Config{}), cl.warmClient(quorum.Config{}), cl.warmClient(quorum.Config{})
				quorum.Fix(c, "waiter", func() float64 { return first })
				quorum.Fix(third, "third", func() float64 { return last })
				var l *quorum.Lease
				if again {
					l = mustAcquire(t, c, t.Context(), "stock")
					taken := acquiring(other, t.Context(), "stock")
					time.Sleep(100 * time.Millisecond) // longer than a turn
					mustRelease(t, l)
					l = (<-taken).lease
				} else {
					l = mustAcquire(t, other, t.Context(), "stock")
				}
				behind := make(chan struct{})
				go func() {
					defer close(behind)
					mustRelease(t, mustWait(t, third, "stock"))
				}()
				time.Sleep(50 * time.Millisecond)
				if again {
					cl.nodes[0].Hold()
				}
				got := acquiring(c, t.Context(), "stock")
				time.Sleep(50 * time.Millisecond)
				cl.nodes[0].Hold()
				start := time.Now()
				released := make(chan error, 1)
				go func() { released <- l.Release(t.Context()) }()
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				if took := time.Since(start); took > 40*time.Millisecond {
					t.Errorf("handed over after %v", took)
				}
				cl.nodes[0].Resume()
				if err := <-released; err != nil {
					t.Error(err)
				}
				mustRelease(t, r.lease)
				<-behind
			})
		})
	}
}

// The nodes have become slow, though not so slow that they do not answer. Who looks because it has heard nothing for a while waits for
// the answer, and sends no script.
func TestLookWaitsForASlowNode(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		own(cl.nodes, "stock", "stranger:1")
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(5 * time.Second)
		for _, n := range cl.nodes {
			n.Delay(100 * time.Millisecond)
		}
		scripts := cl.scripts()
		time.Sleep(10 * time.Second)
		if n := scripts.Load(); n > 0 {
			t.Errorf("%d scripts for some ten looks", n)
		}
		_ = c.Close()
		wantIs(t, (<-got).err, quorum.ErrClosed)
	})
}

// The same where this process has the lock itself, and does not know yet that somebody has taken it away.
func TestLossIsSeenOnSlowNodes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c, other := cl.warmClient(quorum.Config{}), cl.warmClient(quorum.Config{})
		mustWait(t, c, "stock", quorum.WithLeaseTime(10*time.Minute))
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(5 * time.Second)
		for _, n := range cl.nodes {
			n.Delay(30 * time.Millisecond)
		}
		start := time.Now()
		if _, err := other.ForceRelease(t.Context(), "stock"); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("seen after %v", took)
		}
	})
}

// Clients that died have left their keys on two nodes of five. The lock becomes free on the others, and nobody says so; polls see it,
// since they do not look at the two again and again.
func TestKeysOfTheDeadDoNotHideThatTheLockIsFree(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		quorum.Fix(c, "waiter", func() float64 { return 0.01 })
		warm(t, c)
		own(cl.nodes[:2], "stock", "dead:1")
		own(cl.nodes[2:], "stock", "stranger:1")
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(10 * time.Second)
		for _, n := range cl.nodes[2:] {
			n.Redis().Del("stock")
		}
		start := time.Now()
		mustRelease(t, (<-got).must(t))
		if took := time.Since(start); took > 3*1500*time.Millisecond {
			t.Errorf("seen after %v", took)
		}
	})
}

// The same where it is announced, and one of the two is looked at: others have not come first, it is what it was.
func TestKeyOfTheDeadIsNobodyWhoCameFirst(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		cl.bystanders("stock", 2)
		c := cl.client(quorum.Config{})
		var dead atomic.Bool
		quorum.Fix(c, "waiter", func() float64 {
			if dead.Load() {
				return 0.01
			}
			return 0.99
		})
		warm(t, c)
		own(cl.nodes[:2], "stock", "dead:1")
		own(cl.nodes[2:], "stock", "stranger:1")
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(100 * time.Millisecond)
		dead.Store(true)
		for _, n := range cl.nodes[2:] {
			n.Redis().Del("stock")
			n.Redis().Publish(script.Channel("stock"), script.Free)
		}
		start := time.Now()
		mustRelease(t, (<-got).must(t))
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("seen after %v", took)
		}
	})
}

// Two nodes that refuse messages have hung while somebody who waits had nothing to send to them. When they answer again they are
// looked at again, and tell that the lock is free: the third one does not know.
func TestNodesThatHungAreLookedAtAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
			srv := n.Redis().Server()
			srv.SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
				if cmd == "SUBSCRIBE" {
					p.WriteError("NOPERM this user has no permissions to access one of the channels used as arguments")
				}
				return cmd == "SUBSCRIBE"
			})
			t.Cleanup(func() { srv.SetPreHook(nil) })
		}
		c := cl.warmClient(quorum.Config{})
		own(cl.nodes, "stock", "stranger:1")
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(10 * time.Second)
		for _, n := range cl.nodes[:2] {
			n.Break()
			n.Hold()
		}
		_, err := c.TryAcquire(t.Context(), "other")
		wantIs(t, err, quorum.ErrNoQuorum)
		for _, n := range cl.nodes[:2] {
			n.Resume()
		}
		time.Sleep(5 * time.Second)
		for _, n := range cl.nodes[:2] {
			n.Redis().Del("stock")
		}
		start := time.Now()
		mustRelease(t, (<-got).must(t))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("seen after %v", took)
		}
	})
}
