package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// The rules of a force-release (docs/safety.md), each from the point of view of an opponent.

// Without the two steps this made two holders: the operator reaches nodes 0 and 1, a second client is granted both, node
// 1 restarts empty and forgets the revocation, and the first holder renews at nodes 1 and 2 while node 0 is late.
func TestForceReleaseThatReachesABareMajorityMakesNoSecondHolder(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		oldWay, operatorWay := &faultnet.Cable{}, &faultnet.Cable{}
		a, b := cl.clientOn(oldWay, quorum.Config{}), cl.client(quorum.Config{})
		operator := cl.clientOn(operatorWay, quorum.Config{})
		old := mustAcquire(t, a, t.Context(), "stock")
		synctest.Wait()
		operatorWay.Cut(cl.nodes[2])
		_, err := operator.ForceRelease(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotFreed)
		var qe *quorum.QuorumError
		if !errors.As(err, &qe) || qe.Need != 3 || qe.Got != 2 || qe.RetryAfter <= 0 || qe.RetryAfter > ttl+time.Millisecond {
			t.Errorf("the error tells %+v", qe)
		}
		if n := cl.present("stock"); n != 3 {
			t.Errorf("the lock is on %d nodes, want all: two revocations do not survive the loss of one", n)
		}
		_, err = b.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)

		cl.nodes[1].Restart() // and forgets
		oldWay.Hold(cl.nodes[0])
		_ = old.Renew(t.Context())
		for end := time.Now().Add(3 * ttl); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if second, err := b.TryAcquire(t.Context(), "stock"); err == nil {
				if old.Err() == nil {
					t.Fatal("two holders")
				}
				mustRelease(t, second)
			}
		}
		oldWay.Mend(cl.nodes[0])
	})
}

// The deleted lock may be granted to somebody else at once: from then on the loss of one more node must not bring the old
// holder back.
func TestForceReleaseSurvivesTheLossOfOneNode(t *testing.T) {
	for _, n := range []int{3, 5} {
		for lost := range n {
			inBubble(t, n, func(t *testing.T, cl *cluster) {
				oldWay := &faultnet.Cable{}
				a, b := cl.clientOn(oldWay, quorum.Config{}), cl.client(quorum.Config{})
				old := mustAcquire(t, a, t.Context(), "stock")
				synctest.Wait()
				if held, err := cl.client(quorum.Config{}).ForceRelease(t.Context(), "stock"); err != nil || !held {
					t.Fatal(held, err)
				}
				_ = mustAcquire(t, b, t.Context(), "stock")
				cl.nodes[lost].Restart()
				// The nodes that remember are late for the old holder, as far as a majority without them is left.
				for i, late := 0, 0; late < n-quorum.Majority(n); i++ {
					if i != lost {
						oldWay.Hold(cl.nodes[i])
						late++
					}
				}
				before := old.Remaining()
				if err := old.Renew(t.Context()); err == nil || old.Remaining() > before {
					t.Errorf("N=%d, node %d forgot: the old lease was extended", n, lost)
				}
				for _, node := range cl.nodes {
					oldWay.Mend(node)
				}
			})
		}
	}
}

// One answer is enough, whatever the others say: nodes that forgot may say anything.
func TestSingleRevokedAnswerEndsTheLease(t *testing.T) {
	revoke := func(cl *cluster, l *quorum.Lease) {
		synctest.Wait()
		_ = cl.nodes[4].Redis().Set(script.RevokedKey("stock"), l.Holder())
		cl.nodes[4].Redis().SetTTL(script.RevokedKey("stock"), time.Hour)
	}
	ended := func(t *testing.T, l *quorum.Lease) {
		t.Helper()
		synctest.Wait()
		wantIs(t, l.Err(), quorum.ErrLost)
	}
	for name, act := range map[string]func(t *testing.T, cl *cluster, c *quorum.Coordinator, l *quorum.Lease){
		"renewal": func(t *testing.T, _ *cluster, _ *quorum.Coordinator, l *quorum.Lease) {
			_ = l.Renew(t.Context())
		},
		"renewal by the watchdog": func(t *testing.T, _ *cluster, _ *quorum.Coordinator, _ *quorum.Lease) {
			time.Sleep(ttl/3 + time.Second)
		},
		"late answer": func(t *testing.T, cl *cluster, _ *quorum.Coordinator, l *quorum.Lease) {
			cl.nodes[4].Delay(50 * time.Millisecond)
			if err := l.Renew(t.Context()); err != nil {
				t.Errorf("four of five: %v", err)
			}
			time.Sleep(time.Second)
		},
		"restore": func(t *testing.T, cl *cluster, _ *quorum.Coordinator, l *quorum.Lease) {
			cl.nodes[4].Redis().Del("stock")
			_ = l.Renew(t.Context())
		},
		"nested hold": func(t *testing.T, _ *cluster, c *quorum.Coordinator, l *quorum.Lease) {
			inner, err := c.TryAcquire(l.Context(t.Context()), "stock") // the other four may have granted it
			synctest.Wait()
			if err == nil {
				err = inner.Err()
			}
			wantIs(t, err, quorum.ErrLost)
		},
		"the old count after a nested hold that failed": func(_ *testing.T, _ *cluster, _ *quorum.Coordinator, l *quorum.Lease) {
			quorum.Restate(l, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 5, func(t *testing.T, cl *cluster) {
				c := cl.client(quorum.Config{})
				l := mustAcquire(t, c, t.Context(), "stock")
				revoke(cl, l)
				act(t, cl, c, l)
				ended(t, l)
				if !contains(cl.log.String(), "lease lost", "force-released") {
					t.Errorf("the log does not say why:\n%s", cl.log)
				}
			})
		})
	}
}

// Fewer nodes than a quorum know of the revocation: the holder may go on, and the caller is told that.
func TestForceReleaseThatAMinorityStoredSaysThatTheHolderMayGoOn(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		way := &faultnet.Cable{}
		operator := cl.clientOn(way, quorum.Config{})
		for _, n := range cl.nodes {
			way.Delay(n, 10*time.Millisecond)
		}
		if _, err := operator.Inspect(t.Context(), "stock"); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(25 * time.Millisecond) // the first look is over
			for _, n := range cl.nodes[2:] {
				way.Cut(n)
			}
		}()
		_, err := operator.ForceRelease(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		wantIsNot(t, err, quorum.ErrNotFreed)
		if n := cl.present("stock"); n != 5 {
			t.Errorf("the lock is on %d nodes", n)
		}
		mustRelease(t, l)
	})
}

// A lock that somebody took after the operator had looked is not theirs to free.
func TestForceReleaseSparesWhoComesLater(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		a, b, operator := cl.client(quorum.Config{}), cl.client(quorum.Config{}), cl.clientOn(way, quorum.Config{})
		if _, err := operator.ForceRelease(t.Context(), "stock"); err != nil { // connects
			t.Fatal(err)
		}
		for _, n := range cl.nodes {
			way.Delay(n, 10*time.Millisecond)
		}
		old := mustAcquire(t, a, t.Context(), "stock")
		synctest.Wait()
		freed := make(chan error, 1)
		go func() {
			_, err := operator.ForceRelease(context.Background(), "stock")
			freed <- err
		}()
		time.Sleep(15 * time.Millisecond) // it has seen the holder
		mustRelease(t, old)
		next := mustAcquire(t, b, t.Context(), "stock")
		if err := <-freed; err != nil {
			t.Error(err)
		}
		if err := next.Renew(t.Context()); err != nil {
			t.Errorf("the next holder: %v", err)
		}
		mustRelease(t, next)
	})
}

// Deleting needs as many revocations as survive the loss of one node, and every node where there are fewer.
func TestForceReleaseNeedsEnoughRevocations(t *testing.T) {
	for n, need := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 7: 5} {
		for down := range n {
			inBubble(t, n, func(t *testing.T, cl *cluster) {
				l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
				synctest.Wait()
				operator := cl.client(quorum.Config{})
				for _, node := range cl.nodes[:down] {
					node.Kill()
				}
				held, err := operator.ForceRelease(t.Context(), "stock")
				switch up := n - down; {
				case up < n/2+1:
					wantIs(t, err, quorum.ErrNoQuorum)
				case up < need:
					wantIs(t, err, quorum.ErrNotFreed)
					wantIsNot(t, err, quorum.ErrNoQuorum)
				case err != nil || !held:
					t.Errorf("N=%d, %d up: %v, %v", n, up, held, err)
				}
				if err == nil {
					cl.eventually(time.Second, "nobody has it", func() bool { return cl.present("stock") <= down })
				}
				<-l.Done()
				for _, node := range cl.nodes[:down] {
					node.Start(false)
				}
			})
		}
	}
}
