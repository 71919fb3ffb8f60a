package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// The round trip is longer than the drift: counted from its answer, a renewal would be believed for longer than its keys
// live.
func TestRenewedLeaseEndsBeforeItsKeys(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(10*time.Second))
		if err := l.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		synctest.Wait()
		for _, n := range cl.nodes {
			n.Delay(200 * time.Millisecond)
		}
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, n := range cl.nodes {
			if left := n.Redis().TTL("stock"); l.Remaining() >= left {
				t.Errorf("believed for %v, and the key of node %d lives %v", l.Remaining(), i, left)
			}
		}
	})
}

// A renewal fails because nodes are down; then the others answer that they belong to somebody else.
func TestLossThatOnlyLateAnswersShow(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		if err := l.Renew(t.Context()); err != nil { // the nodes know the script
			t.Fatal(err)
		}
		synctest.Wait()
		cl.nodes[0].Kill()
		cl.nodes[1].Kill()
		own(cl.nodes[2:], "stock", "stranger:1")
		for i, n := range cl.nodes[2:] {
			n.Delay(time.Duration(i) * 20 * time.Millisecond)
		}
		wantIs(t, l.Renew(t.Context()), quorum.ErrNoQuorum)
		if err := l.Err(); err != nil {
			t.Fatalf("%v: the test shows nothing", err)
		}
		cl.eventually(200*time.Millisecond, "the lease ends", func() bool { return l.Err() != nil })
		wantIs(t, l.Err(), quorum.ErrLost)
	})
}
