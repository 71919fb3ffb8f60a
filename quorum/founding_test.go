package quorum_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// Is a cluster whose nodes have no record new, or have they forgotten? See settle.go.

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

// Whoever only wanted a look is gone again while it makes the cluster settled. It stays until all nodes have heard of it: a
// node that had not would be taken for forgetful.
func TestClusterIsFoundedWholeByWhoLeavesAtOnce(t *testing.T) {
	unfounded(t, 5, func(t *testing.T, cl *cluster) {
		far := &faultnet.Cable{}
		for _, n := range cl.nodes[1:] {
			far.Delay(n, 50*time.Millisecond)
		}
		c := cl.clientOn(far, quorum.Config{})
		go func() { _, _ = c.Inspect(t.Context(), "stock") }()
		cl.eventually(5*time.Second, "the first node is told", func() bool {
			return cl.nodes[0].Redis().HGet(script.RecordKey, "until") != ""
		})
		start := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		start = time.Now()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the first lock took %v", took)
		}
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
		time.Sleep(2 * ttl) // longer than a quarantine that somebody decided on who knows of no longer TTL
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

// Every look finds nodes without a record, and one of them has forgotten everything since the look before: there may have been
// a lock in between.
func TestClusterIsNotNewWhileANodeForgetsBetweenTwoLooks(t *testing.T) {
	unfounded(t, 3, func(t *testing.T, cl *cluster) {
		cl.distant()
		start := time.Now()
		const forgetful = 300 * time.Millisecond
		go func() {
			for time.Since(start) < forgetful {
				cl.nodes[2].Redis().FlushAll()
				time.Sleep(time.Millisecond)
			}
		}()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		if took := time.Since(start); took < forgetful {
			t.Errorf("taken for new after %v", took)
		}
	})
}
