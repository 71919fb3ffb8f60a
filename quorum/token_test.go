package quorum_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

func TestTokenOfAFreshClusterIsTheProposalEverywhere(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		now := time.Now().UnixMicro()
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		if l.Token() < now {
			t.Errorf("token %d, clock %d", l.Token(), now)
		}
		for i := range cl.nodes {
			if got := cl.fence(i, "stock"); got != strconv.FormatInt(l.Token(), 10) {
				t.Errorf("node %d stores %q, token %d", i, got, l.Token())
			}
		}
	})
}

// Every counter stands ahead of the clock, by another amount on each node, and the nodes lose theirs one after another,
// with short holds in between. Clocks cannot bridge what was lost.
func TestTokensIncreaseWhenCountersAreAheadAndNodesForgetOneByOne(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		for i, n := range cl.nodes {
			if err := n.Redis().Set(script.FenceKey("stock"), strconv.FormatInt(ahead+int64(i*1000), 10)); err != nil {
				t.Fatal(err)
			}
		}
		clients := []*quorum.Coordinator{cl.client(quorum.Config{}), cl.client(quorum.Config{})}
		last := ahead
		for round := range 40 {
			l, err := clients[round%2].Acquire(t.Context(), "stock") // restarted nodes do not vote at once
			if err != nil {
				t.Fatal(err)
			}
			if l.Token() <= last {
				t.Fatalf("round %d: token %d after %d", round, l.Token(), last)
			}
			last = l.Token()
			mustRelease(t, l)
			synctest.Wait()
			cl.nodes[round%5].Restart()
			time.Sleep(ttl) // fewer than a quorum forget within the guard time
		}
	})
}

// One node's counter is ahead. Who is granted there has a token that no other node knows by itself; then the holder dies
// without a word, and that node with it.
func TestTokenIsStoredByAQuorumBeforeItIsUsed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		if err := cl.nodes[0].Redis().Set(script.FenceKey("stock"), strconv.FormatInt(ahead, 10)); err != nil {
			t.Fatal(err)
		}
		l, cable := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(ttl))
		cable.Cut(cl.nodes[0])
		cable.Cut(cl.nodes[1])
		cl.nodes[0].Kill()
		time.Sleep(ttl)
		next := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		if l.Token() <= ahead || next.Token() <= l.Token() {
			t.Fatalf("token %d after %d, and a counter at %d", next.Token(), l.Token(), ahead)
		}
	})
}

// A node that was missed must not remember too little when it comes back, though no renewal told it: the release does.
func TestReleaseRaisesTheFenceOfNodesThatWereMissed(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		for _, n := range cl.nodes {
			_ = n.Redis().Set(script.FenceKey("stock"), strconv.FormatInt(ahead, 10))
		}
		cl.nodes[3].Kill()
		cl.nodes[4].Kill()
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		cl.nodes[3].Start(false)
		cl.nodes[4].Start(false)
		mustRelease(t, l)
		synctest.Wait()
		for i := range cl.nodes {
			if got := cl.fence(i, "stock"); got != strconv.FormatInt(l.Token(), 10) {
				t.Errorf("node %d stores %q, token was %d", i, got, l.Token())
			}
		}
	})
}

func TestDisagreementCostsOneMoreRoundTripAndNoMore(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		acquire := func() time.Duration {
			start := time.Now()
			l := mustAcquire(t, c, t.Context(), "stock")
			took := time.Since(start)
			mustRelease(t, l)
			synctest.Wait()
			return took
		}
		if took := acquire(); took != 2*time.Millisecond {
			t.Errorf("agreed: %v, want one round trip of 2ms", took)
		}
		time.Sleep(time.Second)
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		_ = cl.nodes[0].Redis().Set(script.FenceKey("stock"), strconv.FormatInt(ahead, 10))
		cl.nodes[2].Kill()
		// node 1 has to be told; raise is a script the nodes do not know yet, which costs another trip, once
		acquire()
		_ = cl.nodes[0].Redis().Set(script.FenceKey("stock"), strconv.FormatInt(2*ahead, 10))
		if took := acquire(); took != 4*time.Millisecond {
			t.Errorf("not agreed: %v, want two round trips of 2ms", took)
		}
	})
}

// A client whose clock is wrong proposes tokens from the future. The nodes do not follow it there.
func TestFencesDoNotRunAwayWithAWrongClock(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cl.clock = skewed{cl.clock, 100 * 24 * time.Hour}
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		if limit := time.Now().Add(ttl).UnixMicro(); l.Token() > limit {
			t.Errorf("token %d is more than a TTL ahead of the nodes' clocks", l.Token()-time.Now().UnixMicro())
		}
	})
}

func TestExhaustedFenceGrantsNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			_ = n.Redis().Set(script.FenceKey("stock"), "9007199254740991")
		}
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
		if !contains(err.Error(), "2^53") || cl.present("stock") != 0 {
			t.Errorf("error %v, %d nodes have the lock", err, cl.present("stock"))
		}
	})
}

// Between the grant and the raise the lock is deleted on the node that has to be raised: it votes for nobody.
func TestRaiseOfALockThatIsGoneIsNoVote(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		_ = cl.nodes[0].Redis().Set(script.FenceKey("stock"), strconv.FormatInt(ahead, 10))
		for _, n := range cl.nodes[:2] {
			n.Delay(10 * time.Millisecond)
		}
		cl.nodes[2].Kill()
		go func() {
			time.Sleep(15 * time.Millisecond) // granted, and the answer is on its way
			if !cl.nodes[1].Redis().Del("stock") {
				t.Error("not granted yet: the test shows nothing")
			}
		}()
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNoQuorum)
	})
}

// A quorum agrees on the token, and another node granted a lower one: it must not be left to remember too little.
func TestNodeThatGrantedALowerFenceIsRaisedSoon(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		for _, n := range cl.nodes[:2] {
			_ = n.Redis().Set(script.FenceKey("stock"), strconv.FormatInt(ahead, 10))
		}
		cl.nodes[2].Delay(20 * time.Millisecond) // it is not among the quorum, whose nodes need no raise
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		cl.eventually(2*time.Second, "the third node stores the token", func() bool {
			return cl.fence(2, "stock") == strconv.FormatInt(l.Token(), 10)
		})
	})
}

// The raise of one node fails, and one that had not answered when the token was found stores it in its place.
func TestNodeThatHasNotAnsweredYetMayStoreTheToken(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		for _, name := range []string{"warm", "stock"} {
			_ = cl.nodes[0].Redis().Set(script.FenceKey(name), strconv.FormatInt(ahead, 10))
		}
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm")) // the nodes know the scripts
		synctest.Wait()
		for i, n := range cl.nodes {
			n.Delay(time.Duration(10+i) * time.Millisecond)
		}
		go func() {
			time.Sleep(23 * time.Millisecond) // two nodes have granted it, the third has not answered
			cl.nodes[1].Kill()
		}()
		l := mustAcquire(t, c, t.Context(), "stock")
		if got := cl.fence(2, "stock"); l.Token() <= ahead || got != strconv.FormatInt(l.Token(), 10) {
			t.Errorf("token %d, counter at %d, and %q is stored", l.Token(), ahead, got)
		}
		mustRelease(t, l)
	})
}

// The grants came in time, the raise that they needed did not.
func TestRaiseThatIsAnsweredTooLateIsNoQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{TTL: time.Hour})
		ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
		for _, name := range []string{"warm", "stock"} {
			_ = cl.nodes[0].Redis().Set(script.FenceKey(name), strconv.FormatInt(ahead, 10))
		}
		cl.nodes[2].Kill()
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm")) // the nodes know the scripts
		for _, n := range cl.nodes[:2] {
			n.Delay(60 * time.Millisecond)
		}
		// There at 180 ms, back at 240 ms; the lease ends between.
		_, err := c.TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(260*time.Millisecond))
		wantIs(t, err, quorum.ErrNoQuorum)
	})
}

// A node's clock was a year ahead once, while there was no lease, and a token came from it. Tokens go on from there, and
// the counter is not forgotten with the day on which nobody used the name.
func TestTokensGrowThoughAClockWasWrongOnceAndADayPassed(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		const year = 365 * 24 * time.Hour
		last := int64(0)
		cycle := func(c *quorum.Coordinator) {
			t.Helper()
			l := mustAcquire(t, c, t.Context(), "stock")
			if l.Token() <= last {
				t.Errorf("token %d after %d, %v less", l.Token(), last, time.Duration(last-l.Token())*time.Microsecond)
			}
			last = l.Token()
			mustRelease(t, l)
		}
		w.Node(0).Skew(1, year)
		time.Sleep(2 * ttl)
		cycle(w.open(1))
		w.Node(0).Skew(1, -year)
		time.Sleep(2 * ttl)
		c := w.open(2)
		cycle(c)
		time.Sleep(25 * time.Hour)
		cycle(c)
	})
}

// The holder has nodes 0 and 1 and gives the lock back; node 0 forgets, and sits out its quarantine, and nobody reaches
// node 1. How far the next token may be from node 0's clock must not depend on how long the next lease is to be.
func TestTokenOfALongLeaseByAClientWhoseClockIsBehindGrows(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		w.cut(0, 2)
		l := mustAcquire(t, w.open(0), t.Context(), "stock")
		first := l.Token()
		mustRelease(t, l)

		w.flush(2, 0)
		w.Client(1).Skew(1, -time.Hour)
		c := w.open(1)
		w.cut(1, 1)
		_, err := c.TryAcquire(t.Context(), "other")
		wantIs(t, err, quorum.ErrQuarantined)
		time.Sleep(ttl + time.Second)

		l = mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(10*time.Minute))
		if l.Token() <= first {
			t.Errorf("token %d after %d, %v less", l.Token(), first, time.Duration(first-l.Token())*time.Microsecond)
		}
		if got := w.log.String(); !contains(got, "shows another time than this machine's", "ahead=59m59") {
			t.Errorf("the log does not tell whose clock is wrong:\n%s", got)
		}
		mustRelease(t, l)
	})
}
