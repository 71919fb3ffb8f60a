package quorum_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redquorum/redquorum/quorum"
)

// Who looks eight times at a lock that two processes want meets one other; they are told apart by what does not change from
// one hold to the next.
func TestCompany(t *testing.T) {
	for _, c := range []struct {
		holders []string
		size    int
	}{
		{nil, 1}, // whoever has the lock
		{[]string{"a:1"}, 1},
		{[]string{"a:1", "a:2", "a:3"}, 1},
		{[]string{"a:1", "b:1", "a:2", "b:2"}, 2},
		{[]string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1"}, 8},
		{[]string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1", "i:1", "j:1"}, 8},                       // of more there is no record
		{[]string{"a:1", "b:1", "c:1", "d:1", "d:2", "d:3", "d:4", "d:5", "d:6", "d:7", "d:8", "d:9", "d:10"}, 1}, // who came long ago is forgotten
		{[]string{"a", "b", "c", "a:1"}, 2},                                                                       // other programs' holders, of which nobody knows what is the client
		{[]string{"tcp:a:1", "tcp:b:1"}, 2},
	} {
		if n := quorum.CompanySize(time.Second, c.holders...); n != c.size {
			t.Errorf("%q: %d, want %d", c.holders, n, c.size)
		}
	}
	if n := quorum.CompanySize(3*time.Second, "a:1", "b:1", "c:1"); n != 1 {
		t.Errorf("%d of long ago count", n-1)
	}
}

// vacate takes a lock from whoever has it, and nobody hears of it.
func (cl *cluster) vacate(name string) {
	for _, n := range cl.nodes {
		n.Redis().Del(name)
	}
}

// acquainted is a client that has met so many who take the lock in turn, a few milliseconds each, and has then had it so often
// and for so long itself, before they go on.
func (cl *cluster) acquainted(takers, holds int, hold time.Duration, draw float64) *hurried {
	h := cl.hurried(3, 5*time.Millisecond)
	h.takers = takers
	quorum.Fix(h.c, "acquainted", func() float64 { return draw })
	ctx, cancel := context.WithCancel(cl.t.Context())
	got := acquiring(h.c, ctx, "stock")
	for h.turns < 400 {
		h.pass()
	}
	cancel()
	wantIs(cl.t, (<-got).err, context.Canceled)
	cl.vacate("stock")
	for range holds {
		l := mustWait(cl.t, h.c, "stock")
		time.Sleep(hold)
		mustRelease(cl.t, l)
	}
	h.pass()
	return h
}

// Whoever has had a turn leaves a lock that goes round fast to the others, for a turn of each that was met at it, and then looks.
// Whoever has not looks soon, and often.
func TestWhoHasHadATurnLeavesTheOthersTheirs(t *testing.T) {
	for _, c := range []struct {
		takers, holds int
		hold          time.Duration
		draw          float64
		least, most   time.Duration
	}{
		{1, 6, 0, 0.001, 149 * time.Millisecond, 150 * time.Millisecond},
		{1, 6, 0, 0.999, 75 * time.Millisecond, 76 * time.Millisecond},
		{1000, 6, 0, 0.001, 999 * time.Millisecond, time.Second}, // each look shows another one
		{1000, 6, 0, 0.999, 500 * time.Millisecond, 501 * time.Millisecond},
		{1000, 3, 0, 0.5, 50 * time.Millisecond, 200 * time.Millisecond},
		{1000, 6, 5 * time.Millisecond, 0.5, 50 * time.Millisecond, 200 * time.Millisecond},
		{1000, 0, 0, 0.5, 50 * time.Millisecond, 200 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d others, %d holds of %v, drawn %v", c.takers, c.holds, c.hold, c.draw), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				h := cl.acquainted(c.takers, c.holds, c.hold, c.draw)
				var looks atomic.Int64 // whose second command this is
				for _, n := range cl.nodes {
					srv := n.Redis().Server()
					srv.SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
						if cmd == "PUBSUB" {
							looks.Add(1)
						}
						return false
					})
					t.Cleanup(func() { srv.SetPreHook(nil) })
				}
				got, start := acquiring(h.c, t.Context(), "stock"), time.Now()
				for looks.Load() == 0 && time.Since(start) < 2*time.Second {
					h.pass()
				}
				if took := time.Since(start); took < c.least || took > c.most+h.each {
					t.Errorf("looked after %v, want %v to %v", took, c.least, c.most)
				}
				first := time.Now()
				for looks.Load() == 1 && time.Since(first) < 2*time.Second {
					h.pass()
				}
				if took := time.Since(first); took > 200*time.Millisecond+h.each {
					t.Errorf("and once more after %v", took)
				}
				cl.end(h.c, got)
			})
		})
	}
}

// Whoever has but a moment looks within it, however many it has met.
func TestStayingAwayDoesNotKeepAShortWaitFromLooking(t *testing.T) {
	const moment = 150 * time.Millisecond
	for title, acquire := range map[string]func(c *quorum.Coordinator, ctx context.Context) <-chan result{
		"wait time": func(c *quorum.Coordinator, ctx context.Context) <-chan result {
			return acquiring(c, ctx, "stock", quorum.WithWaitTime(moment))
		},
		"deadline": func(c *quorum.Coordinator, ctx context.Context) <-chan result {
			ctx, cancel := context.WithTimeout(ctx, moment)
			time.AfterFunc(moment, cancel)
			return acquiring(c, ctx, "stock")
		},
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				h := cl.acquainted(1000, 6, 0, 0.001)
				got := acquire(h.c, t.Context())
				synctest.Wait()
				h.pass()
				cl.vacate("stock")
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				mustRelease(t, r.lease)
			})
		})
	}
}

// The head stays away for all who stand behind it: it looks in time for those who have but a moment, those too who come while it
// does.
func TestHeadThatStaysAwayLooksInTimeForThoseBehindIt(t *testing.T) {
	for title, late := range map[string]time.Duration{"before": 0, "while": 50 * time.Millisecond} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				h := cl.acquainted(1000, 6, 0, 0.001)
				first := acquiring(h.c, t.Context(), "stock")
				if late > 0 {
					time.Sleep(late)
				}
				synctest.Wait()
				second := acquiring(h.c, t.Context(), "stock", quorum.WithWaitTime(600*time.Millisecond))
				h.pass()
				cl.vacate("stock")
				for _, got := range []<-chan result{first, second} {
					r := <-got
					if r.err != nil {
						t.Fatal(r.err)
					}
					mustRelease(t, r.lease)
				}
			})
		})
	}
}

// Whoever has waited long behind others of its process has little time left when it comes to the head of the line.
func TestWaitTimeBeginsBehindOthers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		h := cl.acquainted(1000, 0, 0, 0.001)
		cl.vacate("stock")
		for range 6 {
			mustRelease(t, mustWait(t, h.c, "stock"))
		}
		l, err := h.c.Acquire(t.Context(), "stock", quorum.WithLeaseTime(5*time.Second)) // which is not handed on
		if err != nil {
			t.Fatal(err)
		}
		got := acquiring(h.c, t.Context(), "stock", quorum.WithWaitTime(time.Second))
		time.Sleep(800 * time.Millisecond)
		h.pass() // the lease has lost it
		_ = l.Release(t.Context())
		time.Sleep(5 * time.Millisecond)
		cl.vacate("stock")
		r := <-got
		if r.err != nil {
			t.Fatal(r.err)
		}
		mustRelease(t, r.lease)
	})
}

// The TTL that was seen ends while the others' turns are left to them: then nobody has one.
func TestStayEndsWithTheTTLThatWasSeen(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		h := cl.acquainted(1000, 6, 0, 0.001)
		for _, n := range cl.nodes {
			n.Redis().SetTTL("stock", 100*time.Millisecond)
		}
		start := time.Now()
		l := mustWait(t, h.c, "stock")
		if took := time.Since(start); took > 150*time.Millisecond {
			t.Errorf("had it after %v", took)
		}
		mustRelease(t, l)
	})
}

// Where only goroutines of one process want a lock, however fast, nobody else was met, and no line is kept for it.
func TestLockThatOnlyOneProcessWantsLeavesNoLine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				for range 20 {
					mustRelease(t, mustWait(t, c, "stock", quorum.WithLeaseTime(5*time.Second))) // which is not handed on
				}
			})
		}
		group.Wait()
		synctest.Wait()
		if n := quorum.LinesOf(c); n != 0 {
			t.Errorf("%d lines are left", n)
		}
	})
}
