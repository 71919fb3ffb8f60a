package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

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
		if errors.As(err, &votes) && votes.RetryAfter < 59*time.Second {
			t.Errorf("retry after %v", votes.RetryAfter)
		}
		if got, _ := cl.nodes[0].Redis().Get("stock"); got != "somebody's data" {
			t.Errorf("the data is %q now", got)
		}
	})
}

// The rollback of a failed attempt is announced as such, and no release.
func TestRollbackIsAnnouncedAsRolledBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes[:2] {
			n.Redis().HSet("stock", "stranger:1", "1")
		}
		sub := cl.nodes[2].Redis().NewSubscriber()
		defer sub.Close()
		sub.Subscribe(script.Channel("stock"))
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		if m := <-sub.Messages(); m.Message != script.RolledBack {
			t.Errorf("announced %q", m.Message)
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

// The leader of a split vote keeps its grants until the others have withdrawn: if it withdrew, too, all would begin
// anew.
func TestLeaderOfASplitVoteKeepsItsGrants(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(2 * time.Millisecond)
		}
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		time.Sleep(time.Second)
		for i, rival := range []string{"z-strong:1", "z-strong:1", "z-weak:1"} { // more nodes than we have none of them
			cl.nodes[i].Redis().HSet("stock", rival, "1")
		}
		sub := cl.nodes[4].Redis().NewSubscriber()
		defer sub.Close()
		sub.Subscribe(script.Channel("stock"))
		go func() {
			time.Sleep(9 * time.Millisecond) // we know that the vote is split
			cl.nodes[2].Redis().Del("stock")
		}()
		l := mustAcquire(t, c, t.Context(), "stock")
		select {
		case m := <-sub.Messages():
			t.Errorf("withdrew and announced %q before it won", m.Message)
		default:
		}
		for _, n := range cl.nodes[:2] {
			n.Redis().Del("stock")
		}
		go func() { <-sub.Messages() }() // the release
		mustRelease(t, l)
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
