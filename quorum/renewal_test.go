package quorum_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

func TestWatchdogKeepsALeaseForManyTTLs(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		cl.never(5*ttl, "the lease ends, or a node loses it", func() bool { return l.Err() != nil || cl.present("stock") < 5 })
		if left := l.Remaining(); left < ttl/2 {
			t.Errorf("only %v left under a watchdog", left)
		}
	})
}

func TestLeaseWithALeaseTimeIsNotRenewed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(5*time.Second))
		start := time.Now()
		synctest.Wait()
		before := cl.nodes[0].Requests()
		time.Sleep(4 * time.Second)
		if n := cl.nodes[0].Requests() - before; n > 0 {
			t.Errorf("%d commands about a lease that is not renewed", n)
		}
		<-l.Done()
		if took := time.Since(start); took > 5*time.Second || took < 4*time.Second {
			t.Errorf("ended after %v", took)
		}
		wantIs(t, l.Err(), quorum.ErrLost)
		wantIs(t, l.Release(t.Context()), quorum.ErrLost)
	})
}

func TestExplicitRenewExtendsByTheLeaseTime(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(5*time.Second))
		time.Sleep(4 * time.Second)
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		wantIs(t, l.Renew(t.Context()), quorum.ErrLost)
	})
}

func TestMaxHoldEndsAWatchedLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{MaxHold: 2 * ttl}), t.Context(), "stock")
		start, before := time.Now(), cl.nodes[0].Requests()
		<-l.Done()
		if n := cl.nodes[0].Requests() - before; n > 100 {
			t.Errorf("%d commands for some six renewals of half a dozen commands", n)
		}
		if took := time.Since(start); took > 2*ttl || took < 2*ttl-time.Second {
			t.Errorf("ended after %v, want %v", took, 2*ttl)
		}
		wantIs(t, l.Err(), quorum.ErrLost)
		cl.eventually(time.Second, "released", func() bool { return cl.present("stock") == 0 })
	})
}

func TestMaxHoldMayBeShorterThanTheTTL(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{MaxHold: ttl / 6}), t.Context(), "stock")
		start := time.Now()
		if left := l.Remaining(); left > ttl/6 {
			t.Errorf("%v left of a MaxHold of %v", left, ttl/6)
		}
		<-l.Done()
		if took := time.Since(start); took > ttl/6 || took < ttl/6-time.Second {
			t.Errorf("ended after %v, want %v", took, ttl/6)
		}
	})
}

// A node that was restarted empty, or was missed by the acquire, has the lease again well before the next regular
// renewal, or at that renewal.
func TestLeaseSurvivesARollingRestartWithoutPersistence(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		l := mustAcquire(t, a, t.Context(), "stock")
		for _, n := range cl.nodes {
			n.Kill()
			time.Sleep(time.Second)
			n.Start(false)
			cl.eventually(ttl/3+time.Second, "healed", func() bool { return cl.present("stock") == 5 })
			if _, err := b.TryAcquire(t.Context(), "stock"); err == nil {
				t.Fatal("two holders")
			}
			if err := l.Err(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range cl.nodes {
			if got := cl.fence(i, "stock"); got == "" {
				t.Errorf("node %d has forgotten the fence", i)
			}
		}
		mustRelease(t, l)
		next, err := b.Acquire(t.Context(), "stock") // once the nodes restarted last may vote again
		if err != nil {
			t.Fatal(err)
		}
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
	})
}

func TestMissedNodesAreAskedAgainSoon(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		cl.nodes[3].Kill()
		cl.nodes[4].Kill()
		l := mustAcquire(t, c, t.Context(), "stock")
		cl.nodes[3].Start(false)
		cl.nodes[4].Start(false)
		cl.eventually(2*time.Second, "the bare majority is whole", func() bool { return cl.present("stock") == 5 })
		mustRelease(t, l)
	})
}

// Cut off: Done is closed before the key can have run out anywhere, while requests hang in flight.
func TestLossIsAnnouncedBeforeAnyNodeExpires(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		ctx := l.Context(t.Context())
		time.Sleep(ttl/3 + time.Second) // one renewal
		for _, n := range cl.nodes {
			n.LoseRequests(true)
		}
		<-l.Done()
		if n := cl.present("stock"); n != 3 {
			t.Errorf("announced when only %d of 3 nodes had the key", n)
		}
		wantIs(t, l.Err(), quorum.ErrLost)
		if l.Remaining() != 0 {
			t.Error("something remains of a lost lease")
		}
		<-ctx.Done()
		wantIs(t, context.Cause(ctx), quorum.ErrLost)
	})
}

// A quorum answers the renewal, but after the old end: somebody else may have had the lock in between.
func TestRenewalThatIsAnsweredAfterTheOldEndDoesNotCount(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(2*time.Second))
		time.Sleep(l.Remaining() - 100*time.Millisecond)
		for _, n := range cl.nodes {
			n.Delay(80 * time.Millisecond) // the request arrives in time, the reply does not
		}
		wantIs(t, l.Renew(t.Context()), quorum.ErrLost)
		wantIs(t, l.Err(), quorum.ErrLost)
		cl.eventually(2*time.Second, "what the renewal did is undone", func() bool { return cl.present("stock") == 0 })
	})
}

// The same when the machine is suspended in the middle, and no timer has said yet that the lease is over.
func TestRenewalInFlightDuringASuspendDoesNotCount(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		suspended := &suspendable{Clock: cl.clock}
		cl.clock = suspended
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(ttl))
		if err := l.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		time.Sleep(ttl / 2)
		for _, n := range cl.nodes {
			n.Delay(50 * time.Millisecond)
		}
		renewed := make(chan error, 1)
		go func() { renewed <- l.Renew(t.Context()) }()
		time.Sleep(60 * time.Millisecond)
		suspended.sleep(ttl * 3 / 4) // beyond the old end, and not the new one
		wantIs(t, <-renewed, quorum.ErrLost)
	})
}

// A renewal that reaches the nodes after the lease's end restores nothing, not even for a moment.
func TestRenewalThatArrivesAfterTheEndDoesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(2*time.Second))
		if err := l.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		time.Sleep(l.Remaining() - 100*time.Millisecond)
		for _, n := range cl.nodes {
			n.Hold()
			n.Redis().Del("stock")
		}
		renewed := make(chan error, 1)
		go func() { renewed <- l.Renew(t.Context()) }()
		synctest.Wait()
		for _, n := range cl.nodes {
			n.LoseRequests(true) // and the farewell that follows
		}
		time.Sleep(200 * time.Millisecond)
		for _, n := range cl.nodes {
			n.Delay(20 * time.Millisecond)
			n.Resume()
		}
		cl.never(300*time.Millisecond, "restored after the end", func() bool { return cl.present("stock") > 0 })
		wantIs(t, <-renewed, quorum.ErrLost)
	})
}

// Requests of a lease that has ended do nothing when they arrive at last.
func TestEndedLeaseIsNotRestored(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		l := mustAcquire(t, a, t.Context(), "stock")
		if err := l.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		for _, n := range cl.nodes {
			n.Hold() // renewals reach the sockets, and stay there
		}
		<-l.Done()
		time.Sleep(time.Second)
		if n := cl.present("stock"); n != 0 {
			t.Fatalf("the keys of %d nodes have not run out, and the test shows nothing", n)
		}
		for _, n := range cl.nodes {
			n.Delay(20 * time.Millisecond) // a release is on its way for as long
			n.Resume()
		}
		cl.never(300*time.Millisecond, "restored after its end", func() bool { return cl.present("stock") > 0 })
		mustRelease(t, mustAcquire(t, b, t.Context(), "stock"))
	})
}

func TestLeaseEndsAtOnceWhenMoreThanASpareMinorityBelongsToOthers(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		own(cl.nodes[:3], "stock", "stranger:1")
		start := time.Now()
		<-l.Done()
		if took := time.Since(start); took > ttl/3+time.Second {
			t.Errorf("noticed after %v", took)
		}
		wantIs(t, l.Err(), quorum.ErrLost)
		cl.eventually(time.Second, "the rest is released", func() bool {
			who := cl.holders("stock")
			return who[3] == "" && who[4] == "" && who[0] == "stranger:1"
		})
	})
}

func TestMinorityOfStrangersDoesNotEndALease(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		own(cl.nodes[:2], "stock", "stranger:1")
		time.Sleep(2 * ttl)
		if err := l.Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestRenewalNeverShortens(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		cl.nodes[0].Redis().SetTTL("stock", time.Hour)
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if left := cl.nodes[0].Redis().TTL("stock"); left < time.Hour-time.Second {
			t.Errorf("shortened to %v", left)
		}
	})
}

func TestShortenedTTLIsReported(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		cl.nodes[1].Redis().SetTTL("stock", 5*time.Second)
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if log := cl.log.String(); !contains(log, "shortened", cl.nodes[1].Addr()) {
			t.Errorf("log says %q", log)
		}
	})
}

func TestRenewalKeepsTheFencesAlive(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{TTL: time.Hour}), t.Context(), "stock")
		time.Sleep(25 * time.Hour)
		for i := range cl.nodes {
			if cl.fence(i, "stock") == "" {
				t.Errorf("the fence of node %d ran out under a held lease", i)
			}
			if left := cl.nodes[i].Redis().TTL(script.FenceKey("stock")); left < 23*time.Hour {
				t.Errorf("node %d: %v left", i, left)
			}
		}
		mustRelease(t, l)
	})
}

func TestOutageShorterThanTheTTLCostsNoLease(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(ttl / 3)
		for _, n := range cl.nodes {
			n.Kill()
		}
		time.Sleep(ttl / 2)
		for _, n := range cl.nodes {
			n.Start(true)
		}
		time.Sleep(2 * ttl)
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
	})
}

// What the nodes that answer say is enough: one that hangs does not keep a lease alive that others have outvoted.
func TestNodeThatHangsDoesNotPutOffALoss(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		own(cl.nodes[:3], "stock", "stranger:1")
		cl.nodes[4].Hold()
		start := time.Now()
		wantIs(t, l.Renew(t.Context()), quorum.ErrLost)
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("noticed after %v", took)
		}
	})
}
