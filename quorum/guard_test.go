package quorum_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// bareMajority gives a client the lock on nodes 0 and 1 of three; node 2 never hears of it.
func bareMajority(t *testing.T, cl *cluster, cfg quorum.Config, opts ...quorum.Option) (*quorum.Lease, *faultnet.Cable) {
	t.Helper()
	cable := &faultnet.Cable{}
	cable.Cut(cl.nodes[2])
	l := mustAcquire(t, cl.clientOn(cable, cfg), t.Context(), "stock", opts...)
	if who := cl.holders("stock"); who[0] == "" || who[1] == "" || who[2] != "" {
		t.Fatalf("held on %q, want a bare majority", who)
	}
	return l, cable
}

// stillOne checks that nobody else gets the lock while its holder believes in it.
func stillOne(t *testing.T, other *quorum.Coordinator, l *quorum.Lease) {
	t.Helper()
	second, err := other.TryAcquire(t.Context(), "stock")
	if err == nil && l.Err() == nil {
		t.Fatalf("two holders: %s and %s", l.Holder(), second.Holder())
	}
	if err == nil {
		mustRelease(t, second)
	}
}

// distant makes the way to the nodes long enough that who finds the vote split does not ask again all the time.
func (cl *cluster) distant() {
	for _, n := range cl.nodes {
		n.Delay(5 * time.Millisecond)
	}
}

func TestRestartedEmptyNodeDoesNotMakeASecondQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, _ := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(ttl))
		before := cl.client(quorum.Config{})
		if err := before.Ping(t.Context()); err != nil { // with connections that the restart breaks
			t.Fatal(err)
		}
		cl.nodes[1].Restart()
		_, err := before.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		wantIs(t, err, quorum.ErrQuarantined)
		cl.distant()
		for l.Err() == nil {
			stillOne(t, before, l)
			stillOne(t, cl.client(quorum.Config{}), l)
			time.Sleep(ttl / 100)
		}
		// The guard time later the node votes again.
		time.Sleep(ttl)
		cl.nodes[2].Kill()
		mustRelease(t, mustAcquire(t, before, t.Context(), "stock"))
	})
}

// No connection breaks, and so nobody checks: only the incarnation that the acquire carries tells.
func TestFlushedNodeDoesNotMakeASecondQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		other := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, other, t.Context(), "warm"))
		l, _ := bareMajority(t, cl, quorum.Config{})
		cl.nodes[1].Redis().FlushAll()
		stillOne(t, other, l)
		if err := l.Renew(t.Context()); err != nil { // its own vote there has not run out
			t.Error(err)
		}
		mustRelease(t, l)
	})
}

// A restore on a node in quarantine, where the lease had no vote, must not make its quorum. The node may have forgotten
// a vote for somebody who needs just one more.
//
// The holder has nodes 0 and 1 and loses the way to 1. A contender is granted node 2, and its request to node 1 is on
// its way. Node 2 is restarted empty, so it forgets the contender; the holder's renewal restores there. Then the
// holder's key on node 1 runs out, and the contender's request arrives.
func TestRestoreInQuarantineIsNoVoteForWhoHadNone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		start := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))); synctest.Wait() }
		holder, cable := bareMajority(t, cl, quorum.Config{})

		way := &faultnet.Cable{}
		other := cl.clientOn(way, quorum.Config{NodeTimeout: 5 * time.Second})
		if err := other.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		cable.Cut(cl.nodes[1])
		at(27 * time.Second)
		way.Hold(cl.nodes[1])
		var contender *quorum.Lease
		var wg sync.WaitGroup
		wg.Go(func() { contender, _ = other.TryAcquire(t.Context(), "stock") })
		at(27*time.Second + 500*time.Millisecond)
		if who := cl.holders("stock"); who[2] == "" {
			t.Fatalf("held on %q: the contender was not granted node 2, and the test shows nothing", who)
		}
		cl.nodes[2].Restart()
		cable.Mend(cl.nodes[2])
		for time.Since(start) < 29*time.Second {
			_ = holder.Renew(t.Context()) // the node is in quarantine by then
			time.Sleep(10 * time.Millisecond)
		}
		if who := cl.holders("stock"); who[2] != holder.Holder() {
			t.Fatalf("held on %q: the holder was not restored on node 2, and the test shows nothing", who)
		}
		at(30*time.Second + 100*time.Millisecond)
		way.Mend(cl.nodes[1])
		wg.Wait()
		if contender == nil {
			t.Fatal("the contender got nothing, and the test shows nothing")
		}
		if holder.Err() == nil {
			t.Fatal("two holders")
		}
		mustRelease(t, contender)
	})
}

// Somebody used a TTL that is longer than everybody else's. A node that forgot it would vote too early.
func TestQuarantineLastsAsLongAsTheLongestTTLInUse(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cable := &faultnet.Cable{}
		cable.Cut(cl.nodes[2])
		c := cl.clientOn(cable, quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm")) // nobody knew of ten minutes when the nodes were checked
		l := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(10*time.Minute))
		cable.Cut(cl.nodes[0])
		cable.Cut(cl.nodes[1])
		cl.nodes[1].Restart()
		cl.distant()
		for range 13 {
			stillOne(t, cl.client(quorum.Config{}), l)
			time.Sleep(time.Minute)
		}
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
	})
}

// The holder of a long lease cannot be reached, nor can the only node that knows of it and has not forgotten. Nobody can
// tell how long a quarantine has to be, except whoever was told before.
func TestGuardTimeIsAtLeastWhatWasConfigured(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, cable := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(10*time.Minute))
		cable.Cut(cl.nodes[0])
		cable.Cut(cl.nodes[1])
		cl.nodes[0].Kill()
		cl.nodes[1].Restart()
		for l.Err() == nil {
			stillOne(t, cl.client(quorum.Config{GuardTime: 10 * time.Minute}), l)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(ttl)
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
	})
}

// A second restart in quarantine begins it anew, and nothing ends it early.
func TestQuarantineIsNeverShortened(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, _ := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(ttl))
		long := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, long, t.Context(), "other", quorum.WithLeaseTime(time.Hour)))
		cl.nodes[1].Restart()
		stillOne(t, long, l)
		for range 20 { // clients with shorter ones come and go
			stillOne(t, cl.client(quorum.Config{TTL: time.Second}), l)
			time.Sleep(time.Second)
		}
		cl.nodes[1].Restart()
		time.Sleep(59 * time.Minute)
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(time.Second))
		if err != nil {
			t.Fatal(err) // nodes 0 and 2
		}
		_, err = cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrQuarantined)
	})
}

// unfounded runs a test on nodes that nobody has used yet.
func unfounded(t *testing.T, n int, test func(t *testing.T, cl *cluster)) {
	t.Helper()
	inBubble(t, n, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Restart()
		}
		test(t, cl)
	})
}

func TestNewClusterTakesLocksAtOnce(t *testing.T) {
	unfounded(t, 5, func(t *testing.T, cl *cluster) {
		start := time.Now()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		if took := time.Since(start); took > time.Second {
			t.Errorf("the first lock took %v", took)
		}
		cl.nodes[0].Kill()
		cl.nodes[1].Kill()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
	})
}

// Many processes start at once on a new cluster: none of them takes for forgetful what another is just making settled.
func TestNewClusterOfManyClientsTakesLocksAtOnce(t *testing.T) {
	for range 3 {
		unfounded(t, 5, func(t *testing.T, cl *cluster) {
			for i, n := range cl.nodes {
				n.Delay(time.Duration(i) * 3 * time.Millisecond)
			}
			start := time.Now()
			var wg sync.WaitGroup
			for i := range 8 {
				c := cl.client(quorum.Config{})
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 5 * time.Millisecond)
					mustRelease(t, mustAcquire(t, c, t.Context(), string(rune('a'+i))))
				})
			}
			wg.Wait()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// One client has decided that a cluster is new, and is slow to tell node 4. Another that comes then must not take node 4
// for one that has forgotten.
func TestNodeOfANewClusterIsNotTakenForForgetful(t *testing.T) {
	unfounded(t, 5, func(t *testing.T, cl *cluster) {
		slow := &faultnet.Cable{}
		slow.Delay(cl.nodes[4], 50*time.Millisecond)
		first, second := cl.clientOn(slow, quorum.Config{}), cl.client(quorum.Config{})
		var wg sync.WaitGroup
		wg.Go(func() { mustRelease(t, mustAcquire(t, first, t.Context(), "a")) })
		cl.eventually(5*time.Second, "the first node is told", func() bool {
			return cl.nodes[0].Redis().HGet(script.RecordKey, "until") != ""
		})
		mustRelease(t, mustAcquire(t, second, t.Context(), "b"))
		wg.Wait()
		cl.nodes[0].Kill()
		cl.nodes[1].Kill()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "c"))
	})
}

// With a node that does not answer nobody can tell whether the cluster is new: the others may have forgotten.
func TestClusterThatMayHaveForgottenWaits(t *testing.T) {
	unfounded(t, 3, func(t *testing.T, cl *cluster) {
		cl.nodes[2].Kill()
		start := time.Now()
		c := cl.client(quorum.Config{})
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		wantIs(t, err, quorum.ErrQuarantined)
		l, err := c.Acquire(t.Context(), "stock")
		if took := time.Since(start); err != nil || took < ttl || took > ttl+3*time.Second {
			t.Fatalf("after %v: %v, want the lock after %v", took, err, ttl)
		}
		mustRelease(t, l)
	})
}

// Fewer than a quorum answer: how long the longest TTL is, the others may know.
func TestNothingIsDecidedWithoutAQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(time.Hour)))
		cl.nodes[0].Restart()
		cl.nodes[1].Kill()
		cl.nodes[2].Kill()
		fresh := cl.client(quorum.Config{})
		_, err := fresh.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		time.Sleep(10 * time.Second)
		cl.nodes[1].Start(true)
		time.Sleep(10 * time.Minute)
		_, err = fresh.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrQuarantined)
	})
}

// The looks at a new cluster are not taken at one moment. While one contender's look at node 1 is on its way, another
// makes the cluster settled and takes the lock on nodes 0 and 1, and node 1 forgets everything. To the first contender
// no node had a record when it was looked at.
func TestClusterIsNewOnlyIfAllNodesWereNewAtOneMoment(t *testing.T) {
	unfounded(t, 3, func(t *testing.T, cl *cluster) {
		way, cable := &faultnet.Cable{}, &faultnet.Cable{}
		slow := cl.clientOn(way, quorum.Config{NodeTimeout: 5 * time.Second})
		way.Hold(cl.nodes[1])
		var second *quorum.Lease
		var wg sync.WaitGroup
		wg.Go(func() { second, _ = slow.TryAcquire(t.Context(), "stock") })
		time.Sleep(100 * time.Millisecond)

		quick := cl.clientOn(cable, quorum.Config{})
		mustRelease(t, mustAcquire(t, quick, t.Context(), "warm"))
		cable.Cut(cl.nodes[2])
		first := mustAcquire(t, quick, t.Context(), "stock")
		cl.nodes[1].Redis().FlushAll()
		way.Mend(cl.nodes[1])
		wg.Wait()
		if second != nil && first.Err() == nil {
			t.Fatal("two holders")
		}
	})
}

// A rolling restart of all nodes leaves quarantine behind on all of them, and no lease is lost.
func TestLeaseIsHealedOnNodesInQuarantine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		for range 3 {
			for _, n := range cl.nodes {
				n.Restart()
				cl.eventually(ttl/3+3*time.Second, "healed", func() bool { return cl.present("stock") == 3 })
			}
		}
		time.Sleep(3 * ttl)
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
	})
}

func TestWithoutTheGuardNodesVoteAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Redis().FlushAll()
		}
		c := cl.client(quorum.Config{NoRestartGuard: true})
		l := mustAcquire(t, c, t.Context(), "stock")
		cl.nodes[0].Restart()
		cl.nodes[1].Restart()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{NoRestartGuard: true}), t.Context(), "other"))
		_ = l.Release(t.Context()) // its connections are broken
		for _, n := range cl.nodes {
			if n.Redis().Exists(script.RecordKey) {
				t.Error("a node has a record")
			}
		}
	})
}

func TestClientsThatDisagreeOnTheNumberOfNodesAreWarned(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		three := &cluster{t: t, clock: cl.clock, nodes: cl.nodes[:3], log: &journal{}}
		mustRelease(t, mustAcquire(t, three.client(quorum.Config{}), t.Context(), "stock"))
		if log := three.log.String(); !contains(log, "different numbers of nodes", "ours=3", "theirs=5", "node=a.test:6379") {
			t.Errorf("logged %q", log)
		}
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		if log := cl.log.String(); !contains(log, "different numbers of nodes", "ours=5", "theirs=3") {
			t.Errorf("logged %q", log)
		}
	})
}
