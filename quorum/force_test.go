package quorum_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

func TestForceReleaseStaysReleased(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		a, b, operator := cl.clientOn(way, quorum.Config{}), cl.client(quorum.Config{}), cl.client(quorum.Config{})
		way.Cut(cl.nodes[3])
		way.Cut(cl.nodes[4])
		l := mustAcquire(t, a, t.Context(), "stock") // a bare majority: 0, 1, 2
		cl.nodes[0].Hold()
		held, err := operator.ForceRelease(t.Context(), "stock") // 1, 2, and 3 and 4, which do not know the holder
		if err != nil || !held {
			t.Fatal(held, err)
		}
		cl.nodes[0].Resume()
		way.Mend(cl.nodes[3])
		way.Mend(cl.nodes[4])
		select {
		case <-l.Done():
		case <-time.After(2 * ttl):
			t.Fatal("the lease lives on, on nodes that did not know its holder")
		}
		wantIs(t, l.Err(), quorum.ErrLost)
		cl.eventually(time.Second, "nothing comes back", func() bool { return cl.present("stock") == 0 })
		cl.never(2*ttl, "it comes back", func() bool { return cl.present("stock") > 0 })
		next := mustAcquire(t, b, t.Context(), "stock")
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		mustRelease(t, next)
		synctest.Wait()
		if held, err := operator.ForceRelease(t.Context(), "stock"); held || err != nil {
			t.Errorf("nobody holds it: %v, %v", held, err)
		}
	})
}

// A second force-release must not make the first one's holder forgotten.
func TestTwoForceReleasesKeepBothHoldersOut(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		operator := cl.client(quorum.Config{})
		first := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		force := func() {
			t.Helper()
			synctest.Wait() // no acquire is on its way any more: a node that it reaches later would grant it
			if held, err := operator.ForceRelease(t.Context(), "stock"); err != nil || !held {
				t.Fatal(held, err)
			}
		}
		force()
		second := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		force()
		<-first.Done()
		<-second.Done()
		wantIs(t, first.Err(), quorum.ErrLost)
		wantIs(t, second.Err(), quorum.ErrLost)
		cl.never(2*ttl, "one of them comes back", func() bool { return cl.present("stock") > 0 })
	})
}

func TestForceReleaseWakesWaiters(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		_ = mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		got := acquiring(cl.client(quorum.Config{}), t.Context(), "stock")
		time.Sleep(3*time.Second + time.Millisecond)
		start := time.Now()
		if _, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.err != nil || time.Since(start) > 50*time.Millisecond {
			t.Errorf("%v after %v", r.err, time.Since(start))
		}
	})
}

func TestForceReleaseOfAKeyOfAnotherType(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			_ = n.Redis().Set("stock", "data")
		}
		c := cl.client(quorum.Config{})
		held, err := c.ForceRelease(t.Context(), "stock")
		if !held || err != nil {
			t.Error(held, err)
		}
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
	})
}

func TestForceReleaseWithoutAQuorumSaysSo(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cl.nodes[0].Kill()
		cl.nodes[1].Hold()
		_, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
	})
}

// The nodes answer who has it, or have stored the revocation, and then they are gone.
func TestForceReleaseThatNoQuorumConfirmsSaysSo(t *testing.T) {
	for step, after := range []time.Duration{45 * time.Millisecond, 65 * time.Millisecond} {
		inBubble(t, 3, func(t *testing.T, cl *cluster) {
			operator := cl.client(quorum.Config{})
			for range 2 { // the nodes know the scripts
				own(cl.nodes, "warm", "stranger:1")
				if _, err := operator.ForceRelease(t.Context(), "warm"); err != nil {
					t.Fatal(err)
				}
			}
			own(cl.nodes, "stock", "stranger:1")
			for _, n := range cl.nodes {
				n.Redis().SetTTL("stock", ttl)
				n.Delay(10 * time.Millisecond)
			}
			go func() {
				time.Sleep(after)
				cl.nodes[0].Kill()
				cl.nodes[1].Kill()
			}()
			held, err := operator.ForceRelease(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNoQuorum)
			var qe *quorum.QuorumError
			if !held || !errors.As(err, &qe) || (qe.RetryAfter > 0) != (step == 1) {
				t.Errorf("step %d: held %v, %+v", step+1, held, qe)
			}
			time.Sleep(ttl) // the keys expire
		})
	}
}

// The holder learns of it at its next renewal, and the revocation is there for as long as the lease could be.
func TestForceReleasedLeaseEndsAtItsNextRenewal(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		if held, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); err != nil || !held {
			t.Fatal(held, err)
		}
		for i, n := range cl.nodes {
			if lives := n.Redis().TTL(script.RevokedKey("stock")); lives < l.Remaining() {
				t.Errorf("node %d: revoked for %v, and the lease lives %v", i, lives, l.Remaining())
			}
		}
		start := time.Now()
		<-l.Done()
		if took := time.Since(start); took > ttl/3+time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

func TestInspectTellsWhoHoldsWhatAndForHowLong(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c, o := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		s, err := o.Inspect(t.Context(), "stock")
		if err != nil || s.Verdict != quorum.VerdictFree || s.Holder != "" {
			t.Fatalf("%+v, %v", s, err)
		}
		l := mustAcquire(t, c, t.Context(), "stock")
		_ = mustAcquire(t, c, l.Context(t.Context()), "stock")
		synctest.Wait()
		cl.nodes[0].Kill()
		cl.nodes[1].Hold()
		s, err = o.Inspect(t.Context(), "stock")
		if err != nil || s.Verdict != quorum.VerdictHeld || s.Holder != l.Holder() || s.HoldCount != 2 || s.Token != l.Token() {
			t.Fatalf("%+v, %v", s, err)
		}
		if s.TTL <= 0 || s.TTL > ttl+time.Millisecond || s.Nodes[0].Err == nil || s.Nodes[1].Err == nil || !s.Nodes[2].Held {
			t.Errorf("%+v", s)
		}
		cl.nodes[2].Kill()
		s, err = o.Inspect(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		if s.Verdict != quorum.VerdictUnknown || len(s.Nodes) != 5 {
			t.Errorf("%+v", s)
		}
	})
}

// Somebody held it when it was looked at, though the node that knew does not answer any more when it is to forget.
func TestForceReleaseTellsOfAHolderThatOnlyTheFirstLookFound(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		o := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, o, t.Context(), "warm"))
		own(cl.nodes, "warm", "stranger:1")
		if _, err := o.ForceRelease(t.Context(), "warm"); err != nil { // the nodes know the scripts
			t.Fatal(err)
		}
		synctest.Wait()
		cl.nodes[0].Redis().HSet("stock", "stranger:1", "1")
		for _, n := range cl.nodes {
			n.Delay(10 * time.Millisecond)
		}
		go func() {
			time.Sleep(25 * time.Millisecond) // the first look is over
			cl.nodes[0].Hold()
		}()
		held, err := o.ForceRelease(t.Context(), "stock")
		if err != nil || !held {
			t.Errorf("held: %v, %v", held, err)
		}
		cl.nodes[0].Redis().Del("stock")
	})
}

// A node that was missed when a hold was added, or given back, does not tell the truth.
func TestInspectTellsTheHoldCountOfMostNodes(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for i, count := range []string{"1", "2", "3", "2", "2"} {
			cl.nodes[i].Redis().HSet("stock", "stranger:1", count)
		}
		o := cl.client(quorum.Config{})
		for range 10 { // whatever order they are counted in
			s, err := o.Inspect(t.Context(), "stock")
			if err != nil || s.Holder != "stranger:1" || s.HoldCount != 2 {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		for _, n := range cl.nodes {
			n.Redis().Del("stock")
		}
	})
}

func TestPingTellsWhatEachNodeLacks(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, n := range cl.nodes {
			if keys := n.Redis().Keys(); !slices.Equal(keys, []string{script.RecordKey}) {
				t.Errorf("node %d: ping left %v", i, keys)
			}
		}
		cl.nodes[0].Redis().SetError("NOAUTH Authentication required.")
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("a quorum can: %v", err)
		}
		if !contains(cl.log.String(), "NOAUTH", cl.nodes[0].Addr()) {
			t.Error("the node that cannot is not logged")
		}
		cl.nodes[1].Kill()
		err := c.Ping(t.Context())
		wantIs(t, err, quorum.ErrNoQuorum)
		if !contains(err.Error(), "NOAUTH", cl.nodes[1].Addr()+" failed", cl.nodes[2].Addr()+" granted") {
			t.Error(err)
		}
	})
}

// A force-release that was given up arrives when somebody else has the lock.
func TestLateForceReleaseDoesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		operator, old, next := cl.clientOn(way, quorum.Config{}), cl.client(quorum.Config{}), cl.client(quorum.Config{})
		own(cl.nodes, "warm", "stranger:1")
		if _, err := operator.ForceRelease(t.Context(), "warm"); err != nil {
			t.Fatal(err)
		}
		for _, n := range cl.nodes {
			way.Delay(n, 10*time.Millisecond)
		}
		l := mustAcquire(t, old, t.Context(), "stock")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := operator.ForceRelease(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNoQuorum)
		})
		time.Sleep(25 * time.Millisecond) // it knows the holder, and its second request is on its way
		way.Hold(cl.nodes[1])
		way.Hold(cl.nodes[2])
		wg.Wait()
		_ = l.Release(t.Context())
		synctest.Wait()
		l = mustAcquire(t, next, t.Context(), "stock")
		way.Mend(cl.nodes[1])
		way.Mend(cl.nodes[2])
		time.Sleep(time.Second)
		if n := cl.present("stock"); n != 3 || l.Err() != nil {
			t.Fatalf("on %d nodes, %v", n, l.Err())
		}
		for _, n := range cl.nodes[1:] {
			if n.Redis().Exists(script.RevokedKey("stock")) {
				t.Errorf("%s has stored a revocation that came too late", n.Addr())
			}
		}
		mustRelease(t, l)
	})
}

// A node that never had the lease must refuse it for as long as the others might have kept it.
func TestRevocationLivesAsLongAsTheLeaseEverywhere(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, _ := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(time.Hour))
		if held, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); err != nil || !held {
			t.Fatal(held, err)
		}
		for i, n := range cl.nodes {
			if lives := n.Redis().TTL(script.RevokedKey("stock")); lives < l.Remaining() {
				t.Errorf("node %d: revoked for %v, and the lease lives %v", i, lives, l.Remaining())
			}
		}
	})
}

func TestInspectUnderAContextThatIsOverAsksNobody(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		asked := func() (n int) {
			for _, node := range cl.nodes {
				n += node.Requests()
			}
			return n
		}
		before := asked()
		_, err := c.Inspect(ctx, "stock")
		wantIs(t, err, context.Canceled)
		time.Sleep(time.Second)
		if n := asked() - before; n != 0 {
			t.Errorf("%d commands", n)
		}
	})
}

// Nobody will decide within its time about the node without a record.
func TestPingEndsWithItsContext(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		cl.nodes[0].Restart()
		cl.nodes[1].Hold()
		time.AfterFunc(490*time.Millisecond, cl.nodes[0].Hold) // it has answered, and will not hear what it is worth
		c := cl.client(quorum.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 510*time.Millisecond)
		defer cancel()
		start := time.Now()
		wantIs(t, c.Ping(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took > 510*time.Millisecond {
			t.Errorf("took %v", took)
		}
		cl.nodes[0].Resume()
		cl.nodes[1].Resume()
	})
}

// A renewal was under way when the holder was looked for: the lease has a TTL more than was seen, and the node that it missed
// must refuse the holder as long.
func TestRevocationOutlivesARenewalThatWasUnderWay(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes[:2] {
			n.Redis().HSet("stock", "stranger:1", "1")
			n.Redis().SetTTL("stock", time.Second)
		}
		if held, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); err != nil || !held {
			t.Fatalf("held: %v, %v", held, err)
		}
		for i, n := range cl.nodes {
			if left := n.Redis().TTL(script.RevokedKey("stock")); left < ttl {
				t.Errorf("node %d refuses the holder for %v, want %v at least", i, left, ttl)
			}
		}
	})
}
