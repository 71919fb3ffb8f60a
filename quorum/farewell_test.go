package quorum_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// A node hangs with our acquire in its socket and goes on before the acquire's last moment: the lock appears there
// after everything is over, and is taken back.
func TestNodeThatWakesWithOurRequestIsClean(t *testing.T) {
	for _, hung := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second} {
		inBubble(t, 3, func(t *testing.T, cl *cluster) {
			c := cl.warmClient(quorum.Config{TTL: time.Hour})
			cl.nodes[2].Hold()
			l := mustAcquire(t, c, t.Context(), "stock")
			mustRelease(t, l)
			time.Sleep(hung)
			cl.nodes[2].Resume()
			time.Sleep(2 * time.Second)
			cl.never(10*time.Second, "a key on the node that hung", func() bool { return cl.present("stock") > 0 })
		})
	}
}

// Stragglers are never cancelled, and a release never overtakes them, although it would be quicker: hundreds of cycles
// leave nothing.
func TestReleaseNeverOvertakesALateGrant(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		distant := func(each time.Duration) {
			for i, n := range cl.nodes {
				n.Delay(time.Duration(i*i) * each)
			}
		}
		for range 200 {
			distant(time.Millisecond)
			l := mustAcquire(t, c, t.Context(), "stock")
			distant(time.Millisecond / 10)
			mustRelease(t, l)
		}
		cl.eventually(time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 })
	})
}

func TestReleaseSendsAlthoughItsContextIsOver(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		time.Sleep(time.Second)
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantIs(t, l.Release(ctx), context.Canceled)
		wantIs(t, l.Err(), quorum.ErrReleased)
		cl.eventually(time.Second, "released", func() bool { return cl.present("stock") == 0 })
		wantIs(t, l.Release(t.Context()), quorum.ErrReleased)
	})
}

func TestReleaseWithoutAQuorumSaysSoAndGoesOn(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		time.Sleep(time.Second)
		for _, n := range cl.nodes[:3] {
			n.LoseReplies(true)
			n.LoseRequests(true)
		}
		wantIs(t, l.Release(t.Context()), quorum.ErrNoQuorum)
		if n := cl.present("stock"); n != 3 {
			t.Errorf("%d nodes", n)
		}
		for _, n := range cl.nodes[:3] {
			n.LoseReplies(false)
			n.LoseRequests(false)
		}
		cl.eventually(2*time.Second, "released in the background", func() bool { return cl.present("stock") == 0 })
	})
}

// Somebody saw that the lease lives, and tells the nodes its state when it has been released.
func TestNothingIsSentAfterTheRelease(t *testing.T) {
	for title, way := range map[string]time.Duration{"release under way": 10 * time.Millisecond, "release done": 0} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
				synctest.Wait()
				for _, n := range cl.nodes {
					n.Delay(way)
				}
				go func() { _ = l.Release(context.Background()) }()
				synctest.Wait()
				for range 3 {
					quorum.Restate(l, 1)
					synctest.Wait()
				}
				time.Sleep(time.Second)
				cl.never(ttl, "the lock is back", func() bool { return cl.present("stock") > 0 })
			})
		})
	}
}

func TestReleaseByAnotherHolderDoesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		old := mustAcquire(t, a, t.Context(), "stock", quorum.WithLeaseTime(time.Second))
		<-old.Done()
		cl.eventually(time.Second, "free", func() bool { return cl.present("stock") == 0 })
		l := mustAcquire(t, b, t.Context(), "stock")
		wantIs(t, old.Release(t.Context()), quorum.ErrLost)
		synctest.Wait()
		if cl.present("stock") != 3 || l.Err() != nil {
			t.Error("an old holder released a new one's lock")
		}
	})
}

// A release that was given up, and repeated, arrives when somebody else has the lock.
func TestLateReleaseDoesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.warmClient(quorum.Config{}), cl.warmClient(quorum.Config{})
		old := mustAcquire(t, a, t.Context(), "stock")
		synctest.Wait()
		cl.nodes[2].HoldConnections()
		mustRelease(t, old)
		cl.eventually(2*time.Second, "released over another connection", func() bool { return cl.present("stock") == 0 })
		l := mustAcquire(t, b, t.Context(), "stock")
		cl.eventually(2*time.Second, "the next one has it", func() bool { return cl.present("stock") == 3 })
		before := cl.nodes[2].Requests()
		cl.nodes[2].Resume()
		synctest.Wait()
		if cl.nodes[2].Requests() == before {
			t.Fatal("nothing arrived late, and the test shows nothing")
		}
		if who := cl.holders("stock"); who[2] != l.Holder() || l.Err() != nil {
			t.Errorf("held on %q, %v", who, l.Err())
		}
		mustRelease(t, l)
	})
}

// The node's clock was set back after we had learnt it, so our acquire's last moment comes later there than we think,
// and the acquire arrives after the rollback. "Absent" then proves nothing.
func TestRollbackGoesOnUntilNothingCanArriveAnyMore(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{TTL: time.Hour})
		late := cl.nodes[2]
		late.HoldConnections()
		l := mustAcquire(t, c, t.Context(), "stock")
		late.Redis().SetTime(time.Now().Add(-5 * time.Second))
		late.LoseRequests(true)
		mustRelease(t, l)                  // which is lost behind the acquire,
		time.Sleep(600 * time.Millisecond) // until both are given up, and their connection,
		late.LoseRequests(false)
		time.Sleep(time.Second) // and finds nothing over another one
		late.Resume()
		synctest.Wait()
		if who := cl.holders("stock"); who[2] == "" {
			t.Fatal("the late acquire did nothing: the test shows nothing")
		}
		cl.eventually(2*time.Second, "clean", func() bool { return cl.present("stock") == 0 })
	})
}

// A request that waits behind one under way gives way to the release, and not the other way round.
func TestReleaseReplacesARenewalThatWaits(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{TTL: time.Hour})
		cl.nodes[2].Hold()
		l := mustAcquire(t, c, t.Context(), "stock") // under way to node 2
		if err := l.Renew(t.Context()); err != nil { // waits behind it
			t.Fatal(err)
		}
		mustRelease(t, l)
		cl.nodes[2].Resume()
		time.Sleep(2 * time.Second)
		if cl.present("stock") != 0 {
			t.Error("something is left")
		}
	})
}

// The acquire is on its way still, on a connection that hangs, when the release comes. On another connection it would be
// there first and find nothing.
func TestReleaseWaitsForTheAcquireThatIsUnderWay(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{TTL: time.Hour})
		cl.nodes[2].HoldConnections()
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		time.Sleep(100 * time.Millisecond)
		cl.nodes[2].Resume()
		cl.eventually(2*time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 })
	})
}

// A renewal is sent once more when it was decided what a node is worth that was restarted. The release has been there by then.
func TestReleaseThatGetsThereFirstIsSaidAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{TTL: time.Hour})
		l := mustAcquire(t, c, t.Context(), "stock")
		cl.nodes[2].Restart()
		cl.nodes[2].Delay(5 * time.Millisecond)
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		time.Sleep(2 * time.Second)
		if cl.present("stock") != 0 {
			t.Error("the renewal came after the release")
		}
	})
}

// A node that cannot be reached for a while is clean soon after, though its key would live for an hour.
func TestFarewellOutlastsAnOutage(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{TTL: time.Hour}), t.Context(), "stock")
		synctest.Wait()
		cl.nodes[2].LoseRequests(true)
		mustRelease(t, l)
		time.Sleep(time.Minute)
		if cl.present("stock") != 1 {
			t.Fatal("the test shows nothing")
		}
		cl.nodes[2].LoseRequests(false)
		cl.eventually(2*time.Second, "clean", func() bool { return cl.present("stock") == 0 })
	})
}

// interrupted is a clock that does something the first time a function asks it.
type interrupted struct {
	clock.Clock
	in   string
	by   func()
	once sync.Once
}

func (i *interrupted) Now() clock.Instant {
	callers := make([]uintptr, 4)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.HasSuffix(f.Function, i.in) && i.by != nil {
			i.once.Do(i.by)
		}
	}
	return i.Clock.Now()
}

// heldByOneOfThree is a lease of a young cluster, of which two nodes have forgotten since: a cluster that was founded a moment
// ago takes its time to decide what such nodes are worth.
func heldByOneOfThree(t *testing.T, cl *cluster, c *quorum.Coordinator) *quorum.Lease {
	t.Helper()
	for _, n := range cl.nodes {
		n.Redis().FlushAll()
		n.Delay(2 * time.Millisecond)
	}
	l := mustWait(t, c, "stock")
	time.Sleep(10 * time.Millisecond)
	cl.nodes[0].Redis().FlushAll()
	cl.nodes[1].Redis().FlushAll()
	return l
}

// Two nodes have forgotten, and a renewal waits until it is decided what they are worth, when the lease is given back. It is
// not sent again then: an ended lease is never restored.
func TestRenewalThatWaitedDoesNotPutBackWhatHasEnded(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{TTL: time.Second, NodeTimeout: 40 * time.Millisecond})
		l := heldByOneOfThree(t, cl, c)
		decided := func(i int) bool { return cl.nodes[i].Redis().HGet(script.RecordKey, "until") != "" }
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Renew(t.Context()) })
		time.Sleep(time.Millisecond)
		mustRelease(t, l)
		if decided(0) || decided(1) {
			t.Fatal("the release had to wait for the decision, or the renewal had not")
		}
		cl.never(3*time.Second, "what has ended is back", func() bool {
			return cl.nodes[0].Redis().Exists("stock") || cl.nodes[1].Redis().Exists("stock")
		})
		wg.Wait()
		if !decided(0) || !decided(1) {
			t.Error("the test shows nothing: it was never decided")
		}
	})
}
