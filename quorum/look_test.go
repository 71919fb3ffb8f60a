package quorum_test

import (
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
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
