package quorum_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// attending are the nodes on which somebody attends to the ends of turns.
func (cl *cluster) attending(name string) (nodes []int) {
	for i, n := range cl.nodes {
		if n.Redis().PubSubNumSub(script.TurnChannel(name))[script.TurnChannel(name)] > 0 {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// endTurn announces the end of a turn with a last token, on all nodes.
func (cl *cluster) endTurn(name string, token int64) {
	for _, n := range cl.nodes {
		n.Redis().Publish(script.TurnChannel(name), strconv.FormatInt(token, 10))
	}
}

// free frees a lock on all nodes, and tells nobody.
func (cl *cluster) free(name string) {
	for _, n := range cl.nodes {
		n.Redis().Del(name)
	}
}

// untilItAttends passes the lock on until the waiter attends to the ends of turns.
func (h *hurried) untilItAttends() {
	h.t.Helper()
	for len(h.attending("stock")) == 0 || h.listens() > 0 {
		if h.turns == 2000 {
			h.t.Fatal("it attends to nothing")
		}
		h.pass()
	}
}

// later is a token that no client has got yet.
func later() int64 { return time.Now().Add(time.Hour).UnixMicro() }

// Who waits for a lock that goes round too fast attends on one node, and comes when the end of a turn is announced there.
func TestEndOfATurnIsToldToThoseWhoAttend(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		h := cl.hurried(0, time.Millisecond)
		got := acquiring(h.c, t.Context(), "stock")
		h.untilItAttends()
		if at := cl.attending("stock"); len(at) != 1 {
			t.Errorf("it attends on the nodes %v, want one", at)
		}
		time.Sleep(time.Second / 100)
		cl.free("stock")
		cl.endTurn("stock", later())
		start := time.Now()
		r := <-got
		if took := time.Since(start); r.err != nil || took > 10*time.Millisecond {
			t.Errorf("had it after %v, %v", took, r.err)
		}
		mustRelease(t, r.lease)
		cl.eventually(time.Second, "nobody attends", func() bool { return len(cl.attending("stock")) == 0 })
	})
}

// A lock that goes round fast is free at every other look. That somebody was quicker shows in the token.
func TestTokenTellsWhetherSomebodyWasQuicker(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		h := cl.hurried(0, time.Millisecond)
		got := acquiring(h.c, t.Context(), "stock")
		h.untilItAttends()
		scripts := cl.scripts()
		last := later()
		for _, n := range cl.nodes {
			_ = n.Redis().Set(script.FenceKey("stock"), strconv.FormatInt(last+1, 10))
		}
		cl.free("stock") // it goes round: at this moment nobody has it
		cl.endTurn("stock", last)
		for start := time.Now(); time.Since(start) < 20*time.Millisecond; last++ {
			time.Sleep(200 * time.Microsecond)
			for _, n := range cl.nodes {
				_ = n.Redis().Set(script.FenceKey("stock"), strconv.FormatInt(last+2, 10))
			}
		}
		synctest.Wait()
		if n := scripts.Load(); n > 0 {
			t.Errorf("%d scripts for a lock that somebody else had had since", n)
		}
		// That was the last one: a pause later it finds nothing new.
		start := time.Now()
		r := <-got
		if took := time.Since(start); r.err != nil || took > 300*time.Millisecond {
			t.Errorf("had it after %v, %v", took, r.err)
		}
		mustRelease(t, r.lease)
	})
}

// One that goes round fast is free at every other look. Who was told of no end of a turn looks twice.
func TestLockThatGoesRoundFastIsNotTakenForFree(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		h := cl.hurried(0, time.Millisecond)
		got := acquiring(h.c, t.Context(), "stock")
		h.untilItAttends()
		scripts := cl.scripts()
		// It is free at every look, and somebody had it between any two.
		token := later()
		cl.free("stock")
		for range 400 {
			time.Sleep(time.Millisecond)
			token++
			for _, n := range cl.nodes {
				_ = n.Redis().Set(script.FenceKey("stock"), strconv.FormatInt(token, 10))
			}
		}
		if n := scripts.Load(); n > 0 {
			t.Errorf("%d scripts for a lock that others had all the time", n)
		}
		r := <-got // now it has stopped
		if r.err != nil {
			t.Fatal(r.err)
		}
		mustRelease(t, r.lease)
	})
}

// ends hears what is announced of the ends of turns, by node; somebody attends on each then. See ear.
func (cl *cluster) ends(name string) (heard []<-chan string) {
	for i := range cl.nodes {
		heard = append(heard, cl.hears(i, script.TurnChannel(name)))
	}
	return heard
}

// announced is what was heard since it was asked last, and where.
func announced(heard []<-chan string) (messages []string, nodes []int) {
	synctest.Wait()
	for i, ear := range heard {
		for n := len(ear); n > 0; n-- {
			messages, nodes = append(messages, <-ear), append(nodes, i)
		}
	}
	return messages, nodes
}

// greedy is a client so far away that had to wait once, so that it knows of others.
func (cl *cluster) greedy(delay time.Duration) *quorum.Coordinator {
	cl.t.Helper()
	for _, n := range cl.nodes {
		n.Delay(delay)
	}
	own(cl.nodes, "stock", "stranger:1")
	c := cl.client(quorum.Config{})
	quorum.Fix(c, "greedy", rand.New(rand.NewPCG(1, 1)).Float64)
	warm(cl.t, c)
	got := acquiring(c, cl.t.Context(), "stock")
	time.Sleep(2 * time.Second)
	cl.free("stock")
	cl.announce("stock")
	r := <-got
	if r.err != nil {
		cl.t.Fatal(r.err)
	}
	mustRelease(cl.t, r.lease)
	return c
}

// A process that has a lock again and again announces the end of its turn, on one node, with its last token, and stays away
// for a moment if anybody attends.
func TestEndOfATurnIsAnnounced(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		heard := cl.ends("stock")
		c := cl.greedy(100 * time.Microsecond)
		var tokens []string
		var nodes []int
		var away []time.Duration
		for start := time.Now(); time.Since(start) < 450*time.Millisecond; {
			asked := time.Now()
			l := mustWait(t, c, "stock")
			if messages, at := announced(heard); len(messages) > 0 {
				away, nodes = append(away, time.Since(asked)), append(nodes, at...)
				if last := tokens[len(tokens)-1:]; !slices.Equal(messages, last) {
					t.Errorf("announced %v, want %v", messages, last)
				}
			}
			tokens = append(tokens, strconv.FormatInt(l.Token(), 10))
			mustRelease(t, l)
		}
		t.Logf("%d holds; was away for %v", len(tokens), away)
		if len(nodes) < 3 || len(nodes) > 4 || len(slices.Compact(nodes)) != 1 {
			t.Errorf("announced on the nodes %v, want one in 100ms on one node", nodes)
		}
		if longest := slices.Max(away); longest < 500*time.Microsecond {
			t.Errorf("stayed away for %v at most", longest)
		}
	})
}

// Nobody attends: then an announcement is a round trip for each turn, and no more.
func TestTurnThatNobodyAttendsToGoesOn(t *testing.T) {
	for delay, most := range map[time.Duration]int{100 * time.Microsecond: 1, 20 * time.Millisecond: 10} {
		t.Run(delay.String(), func(t *testing.T) {
			inBubble(t, 5, func(t *testing.T, cl *cluster) {
				c := cl.greedy(delay)
				announced := 0
				for range 200 {
					start := time.Now()
					l := mustWait(t, c, "stock")
					switch took := time.Since(start); {
					case took > 5*delay: // three round trips
						t.Fatalf("an acquire took %v", took)
					case took > 3*delay:
						announced++
					}
					mustRelease(t, l)
				}
				if announced > most {
					t.Errorf("%d announcements in 200 holds, want at most %d", announced, most)
				}
			})
		})
	}
}

// A process that had a lock which goes round fast, and does not come back for it, tells those who attend as well; one that
// comes back at once does not.
func TestProcessThatDoesNotComeBackTellsThoseWhoAttend(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		heard := cl.ends("stock")
		c := cl.greedy(100 * time.Microsecond)
		var last *quorum.Lease
		for range 50 {
			last = mustWait(t, c, "stock")
			mustRelease(t, last)
		}
		if all, _ := announced(heard); len(all) > 0 {
			t.Errorf("announced %v in the middle of its turn", all)
		}
		time.Sleep(5 * time.Millisecond)
		all, _ := announced(heard)
		if want := fmt.Sprint([]int64{-last.Token()}); fmt.Sprint(all) != want {
			t.Errorf("announced %v, want %v", all, want)
		}
	})
}

// The token of a turn's end is that of the hold that was given back, also of one that was not waited for.
func TestTokenOfATurnsEndIsThatOfTheLastHold(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		heard := cl.ends("stock")
		h := cl.hurried(0, time.Millisecond)
		got := acquiring(h.c, t.Context(), "stock", quorum.WithWaitTime(400*time.Millisecond))
		for len(got) == 0 {
			h.pass()
		}
		wantIs(t, (<-got).err, quorum.ErrNotAcquired) // now it knows how fast the lock goes round
		cl.free("stock")
		l := mustAcquire(t, h.c, t.Context(), "stock")
		mustRelease(t, l)
		time.Sleep(5 * time.Millisecond)
		all, _ := announced(heard)
		if want := fmt.Sprint([]int64{-l.Token()}); fmt.Sprint(all) != want {
			t.Errorf("announced %v, want %v", all, want)
		}
	})
}

// Where the ends of turns are refused, for a moment or for ever, a waiter listens to releases, and so the holder hears of it.
func TestWaiterThatMayNotAttendListensToReleases(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		h := cl.hurried(0, time.Millisecond)
		got := acquiring(h.c, t.Context(), "stock")
		h.untilItAttends()
		ear := cl.nodes[cl.attending("stock")[0]]
		ear.Redis().SetError("LOADING Redis is loading the dataset in memory")
		ear.Break()
		for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
			h.pass()
		}
		ear.Redis().SetError("")
		for start := time.Now(); h.listens() == 0; h.pass() {
			if time.Since(start) > 3*time.Second {
				t.Fatal("it listens to nothing")
			}
		}
		cl.end(h.c, got)
	})
}

// Whoever goes on does not wait for a node that hangs, although turns are announced there.
func TestAnnouncementDoesNotWaitForANodeThatHangs(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		heard := cl.ends("stock")
		c := cl.greedy(100 * time.Microsecond)
		var at []int
		for len(at) == 0 {
			mustRelease(t, mustWait(t, c, "stock"))
			_, at = announced(heard)
		}
		cl.nodes[at[0]].Hold()
		for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
			asked := time.Now()
			l := mustWait(t, c, "stock")
			if took := time.Since(asked); took > 5*time.Millisecond {
				t.Errorf("an acquire took %v", took)
			}
			mustRelease(t, l)
		}
	})
}

// All clients announce and attend on the same node, in whichever order they were told of the nodes, and on another one
// when it does not answer.
func TestClientsAgreeWhereTurnsAreAnnounced(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		h := cl.hurried(0, time.Millisecond)
		backwards := cl.among("edcba").client(quorum.Config{})
		first, second := acquiring(h.c, t.Context(), "stock"), acquiring(backwards, t.Context(), "stock")
		ear := func() int {
			t.Helper()
			for range 2000 {
				h.pass()
				if h.turns%100 == 0 {
					cl.endTurn("stock", 1) // so that they go on attending
				}
				at := cl.attending("stock")
				if len(at) == 1 && cl.nodes[at[0]].Redis().PubSubNumSub(script.TurnChannel("stock"))[script.TurnChannel("stock")] == 2 {
					return at[0]
				}
			}
			t.Fatalf("they attend on the nodes %v", cl.attending("stock"))
			return 0
		}
		before := ear()
		cl.nodes[before].Kill()
		if after := ear(); after == before {
			t.Error("they attend on a node that is down")
		}
		for _, c := range []*quorum.Coordinator{h.c, backwards} {
			_ = c.Close()
		}
		wantIs(t, (<-first).err, quorum.ErrClosed)
		wantIs(t, (<-second).err, quorum.ErrClosed)
	})
}
