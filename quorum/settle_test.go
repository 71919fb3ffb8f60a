package quorum_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// oldSnapshot has node 1 come back from a snapshot that knows nothing of a lease, nor of TTLs over half a minute.
func oldSnapshot(cl *cluster) {
	old := cl.nodes[1].Redis()
	old.Del("stock")
	old.HSet(script.RecordKey, "ttl", "30000", "run", "another") // the snapshot, and another process
	cl.nodes[1].Kill()
	cl.nodes[1].Start(true)
	cl.distant()
}

// A node comes back from a snapshot that is older than the longest TTL in use: its own record cannot tell how long to
// wait. Another node's can, and whoever comes looks at all of them.
func TestQuarantineAfterAnOldSnapshotLastsAsLongAsAnyNodeKnows(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cable := &faultnet.Cable{}
		cable.Cut(cl.nodes[2])
		l := mustAcquire(t, cl.clientOn(cable, quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(5*time.Minute))
		for _, n := range cl.nodes {
			cable.Cut(n)
		}
		oldSnapshot(cl)
		for l.Err() == nil {
			stillOne(t, cl.client(quorum.Config{}), l)
			time.Sleep(20 * time.Second)
		}
	})
}

// Who was connected before the long lease was taken has looked at no record since. What it finds on a node that came back from an
// old snapshot is a reason to look at the others, which know better.
func TestQuarantineAfterAnOldSnapshotLastsAsLongForWhoWasThereBefore(t *testing.T) {
	for title, away := range map[string]time.Duration{"at once": 0, "as soon as they answer": 20 * time.Second} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				before := cl.warmClient(quorum.Config{})
				cable := &faultnet.Cable{}
				cable.Cut(cl.nodes[2])
				l := mustAcquire(t, cl.clientOn(cable, quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(5*time.Minute))
				cable.Cut(cl.nodes[1]) // or its holder would tell it
				oldSnapshot(cl)
				cl.nodes[0].LoseRequests(away > 0)
				_ = before.Ping(t.Context()) // after which nothing has to be taken back
				if is := before.Stats().Nodes[1].Condition; is != quorum.NodeQuarantined {
					t.Fatalf("node 1 is %v", is)
				}
				time.Sleep(away)
				cl.nodes[0].LoseRequests(false)
				time.Sleep(15 * time.Second) // in which nothing is asked for
				for l.Err() == nil {
					stillOne(t, before, l)
					time.Sleep(5 * time.Second)
				}
			})
		})
	}
}

// The others are asked when the long lease has not got to them yet.
func TestQuarantineLastsAsLongAsALeaseThatWasBeingTaken(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		before := cl.warmClient(quorum.Config{})
		cable := &faultnet.Cable{}
		holder := cl.clientOn(cable, quorum.Config{})
		mustRelease(t, mustAcquire(t, holder, t.Context(), "warm"))
		time.Sleep(time.Second)
		cable.Cut(cl.nodes[2])
		const late = 200 * time.Millisecond
		cable.Delay(cl.nodes[0], late)
		var l *quorum.Lease
		var wait sync.WaitGroup
		wait.Go(func() { l = mustAcquire(t, holder, t.Context(), "stock", quorum.WithLeaseTime(5*time.Minute)) })
		time.Sleep(late / 20)
		cable.Cut(cl.nodes[1])
		oldSnapshot(cl)
		wait.Go(func() { _ = before.Ping(t.Context()) })
		time.Sleep(late / 2)
		if before.Stats().Nodes[1].Condition != quorum.NodeQuarantined || cl.nodes[0].Redis().Exists("stock") {
			t.Fatal("it is there already, or nobody has asked: the test shows nothing")
		}
		wait.Wait()
		time.Sleep(35 * time.Second)
		for l.Err() == nil {
			stillOne(t, before, l)
			time.Sleep(5 * time.Second)
		}
	})
}

// Who finds the quarantine has done soon, and goes before the others have answered.
func TestWhoFindsAQuarantineAndGoesLeavesItAsLongAsItShouldBe(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		before, finder := cl.warmClient(quorum.Config{}), cl.warmClient(quorum.Config{})
		cable := &faultnet.Cable{}
		cable.Cut(cl.nodes[2])
		l := mustAcquire(t, cl.clientOn(cable, quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(5*time.Minute))
		cable.Cut(cl.nodes[1])
		oldSnapshot(cl)
		other := mustAcquire(t, finder, t.Context(), "other")
		cl.nodes[0].Delay(50 * time.Millisecond)
		cl.eventually(time.Second, "found", func() bool { return cl.nodes[1].Redis().HGet(script.RecordKey, "run") != "another" })
		_ = other.Release(t.Context())
		_ = finder.Close()
		time.Sleep(35 * time.Second)
		for l.Err() == nil {
			stillOne(t, before, l)
			time.Sleep(5 * time.Second)
		}
	})
}

// A node whose clock was set back looks as if its incarnation had only just begun, or were about to. That must not keep
// everybody from deciding about another node until the clock is there again.
func TestClockThatWasSetBackDoesNotPutOffDecisions(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		cl.nodes[2].Kill()
		cl.nodes[0].Redis().HSet(script.RecordKey, "since", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10))
		cl.nodes[1].Redis().FlushAll()
		start := time.Now()
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrQuarantined)
		l, err := c.Acquire(t.Context(), "stock")
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		if took := time.Since(start); took < ttl || took > ttl+5*time.Second {
			t.Errorf("it took %v, want the quarantine, %v", took, ttl)
		}
	})
}

// While one client asks the nodes of a new cluster, another makes them settled. When the first then wants to decide about
// them, there is nothing left to decide: it has but to ask again.
func TestClusterMayBeFoundedBySomebodyElseAtAnyMoment(t *testing.T) {
	unfounded(t, 3, func(t *testing.T, cl *cluster) {
		for late := time.Duration(0); late < 300*time.Millisecond; late += 7 * time.Millisecond {
			slow := &faultnet.Cable{}
			for _, n := range cl.nodes {
				n.Restart()
				slow.Delay(n, 10*time.Millisecond)
			}
			first, second := cl.client(quorum.Config{}), cl.clientOn(slow, quorum.Config{})
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(late)
				mustRelease(t, mustAcquire(t, first, t.Context(), "a"))
			})
			l, err := second.TryAcquire(t.Context(), "b")
			if err != nil {
				t.Fatalf("with another client %v later: %v", late, err)
			}
			mustRelease(t, l)
			wg.Wait()
		}
	})
}

// A node in quarantine that has the lease again is not missed, though its vote does not count yet: nobody asks it more
// often for that, nor any later the nodes that are missed.
func TestNodeInQuarantineThatHasTheLeaseIsNotMissed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		cut := &faultnet.Cable{}
		cut.Cut(cl.nodes[0])
		bare := mustAcquire(t, cl.clientOn(cut, quorum.Config{}), t.Context(), "other")
		cl.nodes[0].Restart()
		cut.Mend(cl.nodes[0]) // which never voted for this lease, and has forgotten who else it voted for
		for _, name := range []string{"stock", "other"} {
			cl.eventually(ttl/3+5*time.Second, name+" is healed", func() bool { return cl.present(name) == 3 })
		}
		before := cl.nodes[0].Requests()
		time.Sleep(ttl * 2 / 3) // in quarantine still
		if n := cl.nodes[0].Requests() - before; n > 50 {
			t.Errorf("it was asked %d commands' worth, want a few renewals", n)
		}
		mustRelease(t, l)
		mustRelease(t, bare)
	})
}
