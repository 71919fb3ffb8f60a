package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

func TestAcquireTakesTheLockOnEveryNode(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		cl.eventually(time.Second, "all nodes have the holder", func() bool { return cl.present("stock") == 5 })
		for i, who := range cl.holders("stock") {
			if who != l.Holder() {
				t.Errorf("node %d: holder %q, want %q", i, who, l.Holder())
			}
		}
		mustRelease(t, l)
		cl.eventually(time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 })
	})
}

func TestFirstHoldCountsAsOneOnEveryNode(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		if !cl.allCount("stock", l.Holder(), "1")() {
			t.Errorf("hold counts %q", cl.counts("stock", l.Holder()))
		}
	})
}

func TestSecondClientIsRefusedWhileTheFirstHolds(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		l := mustAcquire(t, a, t.Context(), "stock")
		_, err := b.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		wantIsNot(t, err, quorum.ErrNoQuorum)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) {
			t.Fatalf("%T is no QuorumError", err)
		}
		if votes.RetryAfter <= 0 || votes.RetryAfter > ttl+time.Millisecond || votes.Need != 3 || len(votes.Votes) != 5 {
			t.Errorf("retry after %v, need %d, %d votes", votes.RetryAfter, votes.Need, len(votes.Votes))
		}
		mustRelease(t, l)
		next := mustAcquire(t, b, t.Context(), "stock")
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
	})
}

func TestNodeThatHangsAddsNothingToAHealthyMajority(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		c := cl.warmClient(quorum.Config{})
		cl.nodes[1].Hold()
		cl.nodes[3].Hold()
		start := time.Now()
		l := mustAcquire(t, c, t.Context(), "stock")
		if took := time.Since(start); took > 2*time.Millisecond {
			t.Errorf("try-acquire took %v of a 2ms round trip", took)
		}
		start = time.Now()
		mustRelease(t, l)
		if took := time.Since(start); took > 2*time.Millisecond {
			t.Errorf("release took %v of a 2ms round trip", took)
		}
	})
}

func TestNoQuorumWhenTooManyNodesFail(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		cl.nodes[0].Kill()
		cl.nodes[1].Kill()
		cl.nodes[2].Hold()
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		wantIsNot(t, err, quorum.ErrNotAcquired)
		wantIs(t, err, node.ErrTimeout)
		wantIsNot(t, err, context.DeadlineExceeded)
		cl.eventually(time.Second, "the two that granted are rolled back", func() bool { return cl.present("stock") == 0 })
		cl.nodes[2].Resume()
		cl.never(ttl, "the node that hung has the lock", func() bool { return cl.present("stock") > 0 })
	})
}

// The deadline passes in the middle of an acquire. What it left behind is taken back although nobody waits for it.
func TestRollbackDoesNotDependOnTheCallersContext(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(20 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("the request is over"))
		defer cancel()
		for _, n := range cl.nodes[2:] {
			n.Hold()
		}
		_, err := c.TryAcquire(ctx, "stock")
		wantIs(t, err, context.DeadlineExceeded)
		wantIs(t, err, context.Cause(ctx))
		wantIsNot(t, err, quorum.ErrNotAcquired)
		wantIsNot(t, err, quorum.ErrNoQuorum)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || len(votes.Votes) != 5 || votes.Got != 2 {
			t.Fatalf("no votes in %v", err)
		}
		cl.eventually(time.Second, "rolled back", func() bool { return cl.present("stock") == 0 })
		time.Sleep(time.Second) // the last moment of what the others have in their sockets passes
		for _, n := range cl.nodes[2:] {
			n.Resume()
		}
		cl.never(ttl, "a key of the given-up attempt", func() bool { return cl.present("stock") > 0 })
	})
}

// The grant happens, its reply is lost: nobody knows, and it is taken back all the same.
func TestGrantWhoseReplyIsLostIsRolledBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		cl.nodes[0].LoseReplies(true)
		cl.nodes[1].LoseReplies(true)
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.Votes[0].Outcome != quorum.Unknown || votes.Votes[2].Outcome != quorum.Granted {
			t.Errorf("who may have granted it cannot be told from %v", err)
		}
		if cl.present("stock") == 0 {
			t.Fatal("the test lost the requests, too")
		}
		cl.nodes[0].LoseReplies(false)
		cl.nodes[1].LoseReplies(false)
		cl.eventually(2*time.Second, "rolled back", func() bool { return cl.present("stock") == 0 })
	})
}

// A rollback whose answer is lost is said again, and by then the next attempt of the same client has the lock.
func TestRollbackThatIsSaidAgainSparesTheNextAttempt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		const timeout = 100 * time.Millisecond
		c := cl.warmClient(quorum.Config{NodeTimeout: timeout})
		l, _ := bareMajority(t, cl, quorum.Config{})
		cl.nodes[2].LoseReplies(true)
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		mustRelease(t, l)
		time.Sleep(timeout + time.Millisecond) // the rollback is given up, and its connection
		cl.nodes[2].LoseReplies(false)
		mustAcquire(t, c, t.Context(), "stock")
		cl.eventually(time.Second, "everywhere", func() bool { return cl.present("stock") == 3 })
		cl.never(2*time.Second, "the rollback took the next attempt's grant away", func() bool { return cl.present("stock") < 3 })
	})
}

func TestGrantThatComesTooLateIsNoQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(70 * time.Millisecond)
		}
		// drift is 2 ms, the clock's uncertainty and 1 %: the lease would end some 130 ms after its start
		_, err := c.TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(184*time.Millisecond))
		wantIs(t, err, quorum.ErrNoQuorum)
		cl.eventually(time.Second, "rolled back", func() bool { return cl.present("stock") == 0 })
	})
}

// An acquire reaches its nodes after the lease that it asked for would have ended, but within the node timeout.
func TestAcquireThatArrivesAfterItsLeasesEndDoesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		for _, n := range cl.nodes {
			n.Hold()
			n.Delay(20 * time.Millisecond) // the rollback is on its way for as long
		}
		_, err := c.TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(200*time.Millisecond))
		wantIs(t, err, quorum.ErrNoQuorum)
		for _, n := range cl.nodes {
			n.Resume()
		}
		cl.never(time.Second, "granted after its end", func() bool { return cl.present("stock") > 0 })
	})
}

// Whether the lock is held can be told from the nodes that answer. One that never does is waited for once.
func TestSilentNodeIsNotWaitedForTwice(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		_ = mustAcquire(t, a, t.Context(), "stock")
		synctest.Wait()
		cl.nodes[4].Hold()
		for try := range 3 {
			start := time.Now()
			_, err := b.TryAcquire(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNotAcquired)
			if took := time.Since(start); try > 0 && took > 20*time.Millisecond {
				t.Errorf("try %d took %v", try, took)
			}
			time.Sleep(time.Second)
		}
	})
}

// Without the guard nobody compares the servers' names, and the first lock shows it: its owner sees which node it is.
func TestNodeThatKnowsAFreshHolderCastsNoVote(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cable := &faultnet.Cable{}
		twice := []*node.Node{cl.nodes[0].Open(t, cl.clock, cable), cl.nodes[1].Open(t, cl.clock, cable), cl.nodes[0].Alias("z.test:6379").Open(t, cl.clock)}
		c, err := quorum.New(twice, quorum.Config{Clock: cl.clock, NoRestartGuard: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cable.Delay(cl.nodes[1], 20*time.Millisecond) // one server has answered twice by then
		_, err = c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrSameServer)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.Got > 1 {
			t.Errorf("one server has several votes: %v", err)
		}
	})
}

func TestTwoAddressesOfOneServerAreAnError(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		twice := []*node.Node{cl.nodes[0].Open(t, cl.clock, &faultnet.Cable{}), cl.nodes[1].Open(t, cl.clock, &faultnet.Cable{}), cl.nodes[0].Alias("z.test:6379").Open(t, cl.clock)}
		c, err := quorum.New(twice, quorum.Config{Clock: cl.clock})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// A quorum may have answered before it shows, once.
		if l, err := c.Acquire(t.Context(), "stock"); err == nil {
			synctest.Wait()
			_ = l.Release(t.Context())
		}
		_, err = c.Acquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrSameServer)
		_, err = c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrSameServer)
		time.Sleep(time.Second)
		if cl.present("stock") != 0 {
			t.Error("something is left")
		}
	})
}
