package quorum_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

func TestCloseFreesWhatIsHeldAndIsBounded(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{}) // node timeout 500ms
		var leases []*quorum.Lease
		for _, name := range []string{"a", "b", "c"} {
			leases = append(leases, mustAcquire(t, c, t.Context(), name))
		}
		time.Sleep(time.Second)
		cl.nodes[0].Hold()
		cl.nodes[1].Hold()
		waiting := make(chan error, 1)
		go func() {
			_, err := c.Acquire(quorum.WithoutLease(t.Context()), "a")
			waiting <- err
		}()
		time.Sleep(time.Second)
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v, want at most two node timeouts", took)
		}
		wantIs(t, <-waiting, quorum.ErrClosed)
		for _, l := range leases {
			wantIs(t, l.Err(), quorum.ErrReleased)
			wantIs(t, l.Release(t.Context()), quorum.ErrReleased)
			for i, who := range cl.holders(l.Name()) {
				if i > 1 && who != "" {
					t.Errorf("node %d still has %s", i, l.Name())
				}
			}
		}
		_, err := c.TryAcquire(t.Context(), "a")
		wantIs(t, err, quorum.ErrClosed)
		_, err = c.Inspect(t.Context(), "a")
		wantIs(t, err, quorum.ErrClosed)
		wantIs(t, c.Ping(t.Context()), quorum.ErrClosed)
	})
}

func TestCloseInTheMiddleOfEverything(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(3 * time.Millisecond)
		}
		for wait := range 30 {
			c := cl.client(quorum.Config{})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for {
						l, err := c.Acquire(t.Context(), "stock")
						if err != nil {
							wantIs(t, err, quorum.ErrClosed)
							return
						}
						_ = l.Release(t.Context())
					}
				})
			}
			time.Sleep(time.Duration(wait) * time.Millisecond)
			_ = c.Close()
			wg.Wait()
		}
		cl.eventually(5*time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 })
	})
}

// While it is being decided what a node is worth that forgot, a renewal is under way to it, and a farewell behind that. Close
// ends with all of it, whenever it comes, and whoever waits for the release with it.
func TestCloseEndsAFarewellThatWaitsForARenewal(t *testing.T) {
	for at := 20 * time.Millisecond; at < 260*time.Millisecond; at += 20 * time.Millisecond {
		inBubble(t, 3, func(t *testing.T, cl *cluster) {
			c := cl.client(quorum.Config{TTL: time.Second, NodeTimeout: 40 * time.Millisecond})
			l := heldByOneOfThree(t, cl, c)
			var wg sync.WaitGroup
			wg.Go(func() { _ = l.Renew(t.Context()) })
			time.Sleep(time.Millisecond)
			wg.Go(func() { _ = l.Release(t.Context()) })
			time.Sleep(at)
			start := time.Now()
			_ = c.Close()
			if took := time.Since(start); took > 80*time.Millisecond {
				t.Errorf("after %v: Close took %v, want two node timeouts at most", at, took)
			}
			wg.Wait()
		})
	}
}

// A lock is won, and Close begins before anybody has it in hand: it is given back.
func TestLockWonWhileCloseRunsIsGivenBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		late := &interrupted{Clock: cl.clock, in: "(*attempt).fence"}
		cl.clock = late
		c := cl.client(quorum.Config{})
		late.by = func() {
			go func() { _ = c.Close() }()
			synctest.Wait()
		}
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrClosed)
		cl.eventually(time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 })
	})
}

// A ruling about a node that came back empty, and a farewell to another that came back and hangs, begin one after the other in
// the last moment: what Close waits for does not add up.
func TestCloseIsBoundedWhateverBeginsMeanwhile(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		mustAcquire(t, c, t.Context(), "stock")
		time.Sleep(10 * time.Millisecond)
		cl.nodes[1].Delay(60 * time.Millisecond)
		cl.nodes[2].Kill()
		start := time.Now()
		var took time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = c.Close()
			took = time.Since(start)
		})
		time.Sleep(50 * time.Millisecond)
		cl.nodes[1].Kill() // with the farewell's answer on its way
		time.Sleep(250 * time.Millisecond)
		cl.nodes[2].Delay(5 * time.Millisecond)
		cl.nodes[2].Start(false)
		cl.eventually(time.Second, "checked", func() bool {
			return cl.nodes[2].Redis().HGet(script.RecordKey, "incarnation") != ""
		})
		time.Sleep(17 * time.Millisecond)
		cl.nodes[2].Hold() // with what it is told of its record
		time.Sleep(356*time.Millisecond - time.Since(start))
		cl.nodes[1].Start(true)
		cl.nodes[1].Hold()
		wg.Wait()
		if longest := 2 * 500 * time.Millisecond; took > longest {
			t.Errorf("took %v, want at most %v", took, longest)
		}
		cl.nodes[1].Resume()
		cl.nodes[2].Resume()
		time.Sleep(time.Minute) // what they had was kept, and runs out
	})
}
