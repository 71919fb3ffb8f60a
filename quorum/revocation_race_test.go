package quorum_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// What happens while a force-release is under way.

// warmed is a client that is connected to all nodes, which know its scripts, those of a force-release included.
func (cl *cluster) warmed(way *faultnet.Cable, cfg quorum.Config) *quorum.Coordinator {
	cl.t.Helper()
	c := cl.clientOn(way, cfg)
	l := mustAcquire(cl.t, c, cl.t.Context(), "warm")
	if err := l.Renew(cl.t.Context()); err != nil {
		cl.t.Fatal(err)
	}
	mustRelease(cl.t, l)
	own(cl.nodes, "warm", "stranger:1")
	if _, err := c.ForceRelease(cl.t.Context(), "warm"); err != nil {
		cl.t.Fatal(err)
	}
	synctest.Wait()
	return c
}

// The operator uses a shorter TTL than the holder, who renews after the operator has looked, and misses a node. That node must
// refuse the holder for as long as the others could have kept it.
func TestRevocationOutlivesALeaseThatIsRenewedMeanwhile(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		operator := cl.warmed(&faultnet.Cable{}, quorum.Config{}) // before anybody used the longer TTL
		l := mustAcquire(t, cl.warmed(way, quorum.Config{TTL: 10 * ttl}), t.Context(), "stock")
		time.Sleep(3 * ttl)
		synctest.Wait()
		for _, n := range cl.nodes {
			n.Delay(10 * time.Millisecond)
		}
		way.Cut(cl.nodes[2])
		renewed := make(chan error, 1)
		go func() {
			time.Sleep(15 * time.Millisecond)
			renewed <- l.Renew(t.Context())
		}()
		if held, err := operator.ForceRelease(t.Context(), "stock"); !held || err != nil {
			t.Fatal(held, err)
		}
		if err := <-renewed; err != nil {
			t.Fatalf("the lease was not renewed in between, and the test shows nothing: %v", err)
		}
		for i, n := range cl.nodes {
			if lives := n.Redis().TTL(script.RevokedKey("stock")); lives < l.Remaining() {
				t.Errorf("node %d: revoked for %v, and the lease lives %v", i, lives, l.Remaining())
			}
		}
	})
}

// A contender was found on one node, and its requests to the others arrive when its revocation is there. It must not get
// the lock with the vote of the node that has deleted its key.
func TestRevokedContenderIsNotGrantedTheLock(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		slow, way := &faultnet.Cable{}, &faultnet.Cable{}
		a, b := cl.warmed(slow, quorum.Config{}), cl.warmed(way, quorum.Config{})
		operator := cl.warmed(&faultnet.Cable{}, quorum.Config{})
		slow.Delay(cl.nodes[1], 50*time.Millisecond)
		slow.Delay(cl.nodes[2], 50*time.Millisecond)
		way.Cut(cl.nodes[2])
		contender := make(chan error, 1)
		go func() {
			_, err := a.TryAcquire(t.Context(), "stock")
			contender <- err
		}()
		time.Sleep(5 * time.Millisecond)
		if held, err := operator.ForceRelease(t.Context(), "stock"); !held || err != nil {
			t.Fatal(held, err)
		}
		next := mustAcquire(t, b, t.Context(), "stock")
		wantIs(t, <-contender, quorum.ErrNotAcquired)
		mustRelease(t, next)
	})
}

// A node that did not tell who has the lock when it was asked first has a holder of its own, as with Redisson's RedLock.
func TestForceReleaseFindsTheHolderOfANodeThatWasLate(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		operator := cl.warmed(&faultnet.Cable{}, quorum.Config{})
		for i, n := range cl.nodes {
			own(cl.nodes[i:i+1], "stock", fmt.Sprintf("redisson%d:1", i))
			n.Redis().SetTTL("stock", ttl)
			n.Delay(10 * time.Millisecond)
		}
		cl.nodes[0].LoseReplies(true)
		time.AfterFunc(40*time.Millisecond, func() { cl.nodes[0].LoseReplies(false) })
		if held, err := operator.ForceRelease(t.Context(), "stock"); !held || err != nil {
			t.Errorf("held %v, %v", held, err)
		}
		if n := cl.present("stock"); n != 0 {
			t.Errorf("the lock is on %d nodes: %v", n, cl.holders("stock"))
		}
	})
}
