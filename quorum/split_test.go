package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// Of several tries at the same moment on a free lock exactly one wins: never two, and never none.
func TestExactlyOneOfSeveralSimultaneousTriesWins(t *testing.T) {
	for _, contenders := range []int{2, 3, 5, 16} {
		rounds := max(5, 40/contenders)
		for _, nodes := range []int{3, 5} {
			t.Run(fmt.Sprintf("%d contenders, %d nodes", contenders, nodes), func(t *testing.T) {
				inBubble(t, nodes, func(t *testing.T, cl *cluster) {
					random := rand.New(rand.NewPCG(uint64(contenders), uint64(nodes)))
					var clients []*quorum.Coordinator
					for range contenders {
						clients = append(clients, cl.client(quorum.Config{}))
					}
					for _, c := range clients {
						mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
						time.Sleep(10 * time.Millisecond)
					}
					for round := range rounds {
						for _, n := range cl.nodes {
							n.Delay(time.Duration(random.IntN(5000)) * time.Microsecond)
						}
						exactlyOneWins(t, clients, fmt.Sprint("cron ", round), random)
					}
				})
			})
		}
	}
}

func exactlyOneWins(t *testing.T, clients []*quorum.Coordinator, name string, random *rand.Rand) {
	t.Helper()
	var mu sync.Mutex
	var won []*quorum.Lease
	var wg sync.WaitGroup
	for _, c := range clients {
		late := time.Duration(random.IntN(1000)) * time.Microsecond
		wg.Go(func() {
			time.Sleep(late)
			l, err := c.TryAcquire(context.Background(), name)
			switch {
			case err == nil:
				mu.Lock()
				won = append(won, l)
				mu.Unlock()
			case !errors.Is(err, quorum.ErrNotAcquired):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%s: %d of %d won", name, len(won), len(clients))
	}
	mustRelease(t, won[0])
}

func TestExactlyOneWinsWithNodesDown(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		random := rand.New(rand.NewPCG(1, 2))
		var clients []*quorum.Coordinator
		for range 4 {
			clients = append(clients, cl.client(quorum.Config{}))
		}
		for _, c := range clients {
			mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
			time.Sleep(10 * time.Millisecond)
		}
		cl.nodes[0].Kill()
		cl.nodes[4].Hold()
		for round := range 25 {
			for _, n := range cl.nodes {
				n.Delay(time.Duration(random.IntN(5000)) * time.Microsecond)
			}
			exactlyOneWins(t, clients, fmt.Sprint("cron ", round), random)
		}
	})
}

// Redisson's RedLock uses another holder on each node: that is a hold, too, and a try must not take it for a vote that
// is still open for long.
func TestHoldUnderAnotherNameOnEachNodeIsNotAcquired(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for i, n := range cl.nodes {
			n.Redis().HSet("stock", fmt.Sprintf("java-%d:1", i), "1")
			n.Redis().SetTTL("stock", time.Minute)
		}
		start := time.Now()
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestKeyOfAnotherTypeIsHeldByAnother(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			_ = n.Redis().Set("stock", "somebody's data")
			n.Redis().SetTTL("stock", time.Minute)
		}
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.RetryAfter < 59*time.Second {
			t.Errorf("%v, want to be told to come back when the key's TTL has run out", err)
		}
		if got, _ := cl.nodes[0].Redis().Get("stock"); got != "somebody's data" {
			t.Errorf("the data is %q now", got)
		}
	})
}

// The rollback of a failed attempt is announced as such, and no release.
func TestRollbackIsAnnouncedAsRolledBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		own(cl.nodes[:2], "stock", "stranger:1")
		heard := cl.ear(2, "stock")
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		if m := <-heard; m != script.RolledBack {
			t.Errorf("announced %q", m)
		}
	})
}

// A rival leaves one node before it gets another. In the answers of one round it seems to have both.
func TestQuorumThatNeverWasIsNoReasonToGiveUp(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		near, far := cl.nodes[1], cl.nodes[2]
		near.Delay(10 * time.Millisecond)
		far.Delay(50 * time.Millisecond)
		for range 3 { // it is known how fast they are
			mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
			time.Sleep(time.Second)
		}
		near.Redis().HSet("stock", "rival:1", "1")
		go func() {
			time.Sleep(20 * time.Millisecond) // we have been there, and not yet here
			near.Redis().Del("stock")
			far.Redis().HSet("stock", "rival:1", "1")
		}()
		start := time.Now()
		l := mustAcquire(t, c, t.Context(), "stock")
		if late := l.Token() - start.UnixMicro(); late != 0 {
			t.Errorf("the questions of one attempt proposed different tokens, one %dus after the first", late)
		}
		mustRelease(t, l)
		far.Redis().Del("stock")
	})
}

// One rival has gone when its nodes are asked a second time, and another one seems to have them. That one, too, is believed
// only after a second look.
func TestEveryRivalIsLookedForTwice(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmAt(10 * time.Millisecond)
		rivals := []*miniredis.Miniredis{cl.nodes[1].Redis(), cl.nodes[2].Redis()}
		for _, r := range rivals {
			r.HSet("stock", "first:1", "1")
		}
		go func() {
			time.Sleep(25 * time.Millisecond) // the second question is on its way
			for _, r := range rivals {
				r.Del("stock")
				r.HSet("stock", "second:1", "1")
			}
			time.Sleep(20 * time.Millisecond) // and now the third
			for _, r := range rivals {
				r.Del("stock")
			}
		}()
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
	})
}

// The leader of a split vote keeps its grants until the others have withdrawn: if it withdrew, too, all would begin
// anew.
func TestLeaderOfASplitVoteKeepsItsGrants(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		heard := cl.ear(4, "stock")
		c := cl.warmAt(2 * time.Millisecond)
		for i, rival := range []string{"z-strong:1", "z-strong:1", "z-weak:1"} { // more nodes than we have none of them
			cl.nodes[i].Redis().HSet("stock", rival, "1")
		}
		go func() {
			time.Sleep(9 * time.Millisecond) // we know that the vote is split
			cl.nodes[2].Redis().Del("stock")
		}()
		l := mustAcquire(t, c, t.Context(), "stock")
		select {
		case m := <-heard:
			t.Errorf("withdrew and announced %q before it won", m)
		default:
		}
		for _, n := range cl.nodes[:2] {
			n.Redis().Del("stock")
		}
		mustRelease(t, l)
	})
}

// The first question was answered "held" by a node, a copy of it came late and was granted, and the second one finds itself
// there. That is a grant, and no other server's memory.
func TestHolderThatWasAskedForTwiceMayFindItself(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmAt(10 * time.Millisecond)
		for _, n := range cl.nodes[1:] {
			n.Redis().HSet("stock", "rival:1", "1")
		}
		go func() {
			time.Sleep(25 * time.Millisecond) // the second question is on its way
			cl.nodes[1].Redis().Del("stock")
			cl.nodes[1].Redis().HSet("stock", cl.holders("stock")[0], "1")
		}()
		l := mustAcquire(t, c, t.Context(), "stock")
		cl.nodes[2].Redis().Del("stock")
		mustRelease(t, l)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock")) // nobody is accused
	})
}

// Three have a node each: the one with the smallest holder leads, and who is in the middle withdraws at once, though one of the
// rivals would give way to it.
func TestOfEquallyStrongContendersTheSmallestHolderLeads(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmAt(time.Millisecond)
		for round := range 100 { // in whatever order the rivals are compared; one in eight is the other one
			name := fmt.Sprint("stock ", round)
			cl.nodes[1].Redis().HSet(name, "!:1", "1")
			cl.nodes[2].Redis().HSet(name, "z:1", "1")
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = c.TryAcquire(ctx, name)
			}()
			time.Sleep(3100 * time.Microsecond) // there, back, and at once there again
			if who := cl.holders(name)[0]; who != "" {
				t.Errorf("round %d: %s stays", round, who)
			}
			cancel()
			<-gone
			cl.nodes[1].Redis().Del(name)
			cl.nodes[2].Redis().Del(name)
			time.Sleep(time.Second)
		}
	})
}

// Another contender has one node, and a smaller holder; that does not hide who has a quorum.
func TestHolderOfAQuorumIsFoundAmongOtherContenders(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.warmAt(time.Millisecond)
		for i, who := range []string{"!:1", "z:1", "z:1", "z:1"} {
			cl.nodes[i].Redis().HSet("stock", who, "1")
		}
		for round := range 20 { // in whatever order they are compared
			start := time.Now()
			_, err := c.TryAcquire(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNotAcquired)
			if took := time.Since(start); took > 5*time.Millisecond {
				t.Errorf("round %d: took %v, of two looks of 2ms", round, took)
			}
			time.Sleep(time.Second)
		}
		for _, n := range cl.nodes {
			n.Redis().Del("stock")
		}
	})
}

// One node has a holder; of the others, one is down and one does not answer. Nobody can tell whether the lock is held.
func TestHolderOnOneNodeOfTooFewThatAnswerIsNoRefusal(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		synctest.Wait()
		cl.nodes[0].Redis().HSet("stock", "rival:1", "1")
		cl.nodes[1].Kill()
		cl.nodes[2].Hold()
		for range 3 { // the second time it is not waited for as long
			_, err := c.TryAcquire(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNoQuorum)
			wantIsNot(t, err, quorum.ErrNotAcquired)
		}
		cl.nodes[0].Redis().Del("stock")
	})
}

// Of two one leads and one comes back, soon; of five who have a node each, four come back, over a time that has room for
// them.
func TestContendersThatWithdrawComeBackLaterTheMoreThereAre(t *testing.T) {
	held := func(holders ...string) (votes []quorum.Vote) {
		for _, h := range holders {
			votes = append(votes, quorum.Vote{Outcome: quorum.Held, Holder: h})
		}
		return append(votes, quorum.Vote{Outcome: quorum.Granted, Holder: "us"}, quorum.Vote{Outcome: quorum.Failed})
	}
	for want, votes := range map[int][]quorum.Vote{0: held("a", "a", "a"), 1: held("a", "b", "a"), 3: held("a", "b", "c", "d")} {
		if got := quorum.Rivals(votes); got != want {
			t.Errorf("%d further rivals in %v, want %d", got, votes, want)
		}
	}
	if got := quorum.Rivals(held()); got != 0 {
		t.Errorf("%d rivals where nobody else was seen", got)
	}
}
