package quorum_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// What is announced while others hold the lock, and is no news that a quorum is free, brings no attempt: only the poll
// does, every half second at most.
func TestOnlyAQuorumOfReleasesWakesAWaiter(t *testing.T) {
	all := func(cl *cluster, payload string) {
		for _, n := range cl.nodes {
			n.Redis().Publish(script.Channel("stock"), payload)
		}
	}
	for title, announce := range map[string]func(cl *cluster, i int){
		"one node's release, again and again": func(cl *cluster, _ int) {
			cl.nodes[0].Redis().Publish(script.Channel("stock"), script.Free)
		},
		"rollbacks on all nodes": func(cl *cluster, _ int) { all(cl, script.RolledBack) },
		"a release on all nodes, once": func(cl *cluster, i int) {
			if i == 0 {
				all(cl, script.Free)
			}
		},
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 5, func(t *testing.T, cl *cluster) {
				for _, n := range cl.nodes {
					n.Redis().HSet("stock", "stranger:1", "1")
					n.Delay(time.Millisecond)
				}
				b := cl.client(quorum.Config{})
				got := acquiring(b, t.Context(), "stock")
				time.Sleep(5 * time.Second)
				before := cl.nodes[4].Requests()
				for i := range 200 {
					announce(cl, i)
					time.Sleep(10 * time.Millisecond)
				}
				// An attempt is an acquire, asked once or twice, of half a dozen commands; and the rollback.
				if n := cl.nodes[4].Requests() - before; n > 100 {
					t.Errorf("%d commands for some four polls", n)
				}
				_ = b.Close()
				wantIs(t, (<-got).err, quorum.ErrClosed)
			})
		})
	}
}

// A quorum announces the release while the attempt that did not see it is still under way.
func TestReleaseDuringAnAttemptWakesTheWaiter(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		cl.nodes[1].Delay(30 * time.Millisecond)
		cl.nodes[2].Delay(30 * time.Millisecond)
		for range 3 { // it is known how fast they are
			mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
			time.Sleep(time.Second)
		}
		own(cl.nodes, "stock", "stranger:1")
		for _, n := range cl.nodes {
			n.Redis().SetTTL("stock", 5*time.Second)
		}
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(4 * time.Second)
		// When the TTLs have run out it tries, but the stranger has renewed them. Wait for that attempt to begin: node 0 has
		// answered it, the others have not seen it yet.
		for _, n := range cl.nodes {
			n.Redis().SetTTL("stock", time.Hour)
		}
		cl.asked(0, 3)
		for _, n := range cl.nodes[:2] {
			time.Sleep(20 * time.Millisecond) // the second time, node 1 has answered, and its answer is on its way
			n.Redis().Del("stock")
			n.Redis().Publish(script.Channel("stock"), script.Free)
		}
		start := time.Now()
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 250*time.Millisecond {
			t.Errorf("woken after %v", took)
		}
	})
}

// The release is announced after the first attempt and before anybody listens.
func TestReleaseBeforeTheSubscriptionIsNotMissed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		for _, n := range cl.nodes {
			n.Redis().HSet("stock", "stranger:1", "1")
			n.Delay(10 * time.Millisecond)
		}
		cl.nodes[2].Kill() // so that no subscription is left to be confirmed when a quorum has been
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(15 * time.Millisecond)
		for _, n := range cl.nodes[:2] {
			n.Redis().Del("stock")
		}
		start := time.Now()
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("had it after %v", took)
		}
	})
}

// Others wait as well. So whoever is woken stays away for a moment, and then looks at one node. Meanwhile the next one has come and
// gone, and just that node does not know.
func TestReleaseWhileTheWaiterStaysAwayIsNotMissed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		got := cl.wokenToStayAway()
		for _, n := range cl.nodes[1:] {
			n.Redis().Del("stock")
			n.Redis().Publish(script.Channel("stock"), script.Free)
		}
		start := time.Now()
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("had it after %v", took)
		}
	})
}

// The next one has come and gone, and a third has it: that costs some looks, and no script.
func TestReleaseThatWasTakenUpMeanwhileCostsNoScript(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		got := cl.wokenToStayAway()
		own(cl.nodes, "stock", "stranger:3")
		for _, n := range cl.nodes {
			n.Redis().Publish(script.Channel("stock"), script.Free)
		}
		before := 0
		for _, n := range cl.nodes {
			before += n.Requests()
		}
		cl.never(400*time.Millisecond, "a script", func() bool {
			after := 0
			for _, n := range cl.nodes {
				after += n.Requests()
			}
			return after > before+3*2+3 // a look is two commands, a ping one; a script has more, and goes to all
		})
		cl.vacate("stock")
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
	})
}

// A node that is the last to announce a release does so while the waiter stays away. That is no news of the next one.
func TestRestOfAReleaseDoesNotCountForTheNext(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		got := cl.wokenToStayAway()
		time.Sleep(200 * time.Millisecond) // it has looked, and somebody else has the lock
		before := cl.nodes[0].Requests()
		cl.nodes[0].Redis().Publish(script.Channel("stock"), script.Free)
		cl.never(300*time.Millisecond, "a look", func() bool { return cl.nodes[0].Requests() > before+1 }) // one ping
		cl.vacate("stock")
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
	})
}

// wokenToStayAway returns when a waiter has been woken that stays away for a moment, since another one waits, too. It looks at node 0
// then.
func (cl *cluster) wokenToStayAway() <-chan result {
	for i := range cl.nodes {
		cl.ear(i, "stock")
	}
	c := cl.client(quorum.Config{})
	quorum.Fix(c, "waiter", func() float64 { return 0.15 })
	for _, n := range cl.nodes {
		n.Delay(10 * time.Millisecond)
	}
	for range 40 { // it is known how fast they are, and so how long to stay away
		mustRelease(cl.t, mustAcquire(cl.t, c, cl.t.Context(), "warm"))
		time.Sleep(100 * time.Millisecond)
	}
	own(cl.nodes, "stock", "stranger:1")
	got := acquiring(c, cl.t.Context(), "stock")
	announce := func() {
		for _, n := range cl.nodes {
			n.Redis().Publish(script.Channel("stock"), script.Free)
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(5 * time.Second)
	announce()
	time.Sleep(time.Second) // it has tried in vain, and what was announced until then is forgotten
	own(cl.nodes, "stock", "stranger:2")
	announce()
	time.Sleep(12 * time.Millisecond)
	return got
}

// A contender that came second has withdrawn, and stays away for a while whatever is announced.
func TestWakeDoesNotShortenTheDelayOfASplitVote(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Redis().HSet("stock", "stranger:1", "1")
			n.Delay(10 * time.Millisecond)
		}
		heard := cl.ear(2, "stock")
		c := cl.client(quorum.Config{})
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(5 * time.Second) // it listens
		for i, n := range cl.nodes {
			n.Redis().Del("stock")
			if i < 2 {
				n.Redis().HSet("stock", "!smaller:"+strconv.Itoa(i), "1") // it leads us
			}
		}
		rollbacks, over := 0, time.After(900*time.Millisecond) // later it is clear that nobody leads, and all wait
		for open := true; open; {
			select {
			case <-heard:
				rollbacks++
			case <-over:
				open = false
			case <-time.After(5 * time.Millisecond):
				for _, n := range cl.nodes[:2] {
					n.Redis().Publish(script.Channel("stock"), script.Free)
				}
			}
		}
		if rollbacks > 12 {
			t.Errorf("%d attempts of 20ms and the delays between them, in 900ms", rollbacks)
		}
		_ = c.Close()
		wantIs(t, (<-got).err, quorum.ErrClosed)
	})
}

// Of all that wait for a name in one process, one asks the nodes.
func TestOnlyTheHeadOfALineTalksToTheNodes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		own(cl.nodes, "stock", "stranger:1")
		c := cl.client(quorum.Config{})
		var all []<-chan result
		for range 50 {
			all = append(all, acquiring(c, t.Context(), "stock"))
		}
		time.Sleep(5 * time.Second)
		if n := cl.nodes[0].Requests(); n > 200 {
			t.Errorf("%d commands for some ten attempts", n)
		}
		_ = c.Close()
		for _, got := range all {
			wantIs(t, (<-got).err, quorum.ErrClosed)
		}
	})
}

// The TTLs differ: the lock can be had when the need-th of them has run out.
func TestRetryAfterIsWhenAQuorumIsFree(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for i, n := range cl.nodes {
			n.Redis().HSet("stock", "stranger:1", "1")
			n.Redis().SetTTL("stock", time.Duration(i+1)*10*time.Second)
		}
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.RetryAfter < 30*time.Second || votes.RetryAfter > 30*time.Second+2*time.Millisecond {
			t.Errorf("%v", err)
		}
	})
}

// Redisson's RedLock has another holder on each node. That is a hold: a waiter waits for it, and does not ask all the
// time.
func TestWaiterTakesAStalemateForAHold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for i, n := range cl.nodes {
			n.Redis().HSet("stock", "java-"+strconv.Itoa(i)+":1", "1")
		}
		c := cl.client(quorum.Config{})
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(5 * time.Second)
		before := cl.nodes[0].Requests()
		time.Sleep(10 * time.Second)
		if n := cl.nodes[0].Requests() - before; n > 60 {
			t.Errorf("%d commands for some ten attempts", n)
		}
		_ = c.Close()
		wantIs(t, (<-got).err, quorum.ErrClosed)
	})
}

// The release is announced while no connection listens. Who listens again does not wait for the poll.
func TestWaiterThatWasCutOffTriesWhenItListensAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		own(cl.nodes, "stock", "stranger:1")
		c := cl.client(quorum.Config{})
		quorum.Fix(c, "waiter", func() float64 { return 0.999 }) // it polls as seldom as it may
		got := acquiring(c, t.Context(), "stock")
		time.Sleep(5 * time.Second)
		cl.asked(2, 2) // a look
		time.Sleep(100 * time.Millisecond)
		for _, n := range cl.nodes {
			n.Kill()
			n.Start(true)
			n.Redis().Del("stock")
		}
		start := time.Now()
		if r := <-got; r.err != nil {
			t.Fatal(r.err)
		}
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("had it after %v", took)
		}
	})
}

// asked waits until a node is asked something that takes so many commands. A subscription's heartbeat is one, a look is
// two, an attempt more.
func (cl *cluster) asked(i, commands int) {
	cl.t.Helper()
	synctest.Wait()
	before := cl.nodes[i].Requests()
	cl.eventually(3*time.Second, "a question", func() bool {
		last := before
		before = cl.nodes[i].Requests()
		return before >= last+commands
	})
}

func TestVoteIsToldInAFewWords(t *testing.T) {
	for want, vote := range map[string]quorum.Vote{
		"a unknown":               {Node: "a"},
		"a granted":               {Node: "a", Outcome: quorum.Granted, Holder: "us:1", TTL: time.Second},
		"a held by them:1 for 1s": {Node: "a", Outcome: quorum.Held, Holder: "them:1", TTL: time.Second},
		"a held":                  {Node: "a", Outcome: quorum.Held},
		"a failed: no":            {Node: "a", Outcome: quorum.Failed, Err: errors.New("no")},
		"a unknown: no answer":    {Node: "a", Err: &node.Error{Node: "a", Err: errors.New("no answer")}},
	} {
		if got := vote.String(); got != want {
			t.Errorf("told as %q, want %q", got, want)
		}
	}
}

// Whoever waits is counted, and nobody else: how often a waiter looks depends on it.
func TestNamesThatAreHeldAreNotAmongThoseWaitedFor(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		other, c := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		theirs := mustAcquire(t, other, t.Context(), "stock")
		for i := range 3 {
			if r := <-acquiring(c, t.Context(), "mine-"+strconv.Itoa(i)); r.err != nil {
				t.Fatal(r.err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first, second := acquiring(c, t.Context(), "stock"), acquiring(c, ctx, "stock")
		time.Sleep(time.Second)
		if lines, names := quorum.LinesOf(c), quorum.NamesWaitedFor(c); lines != 4 || names != 1 {
			t.Errorf("%d lines, %d names that are waited for; want 4 and 1", lines, names)
		}
		cancel()
		mustRelease(t, theirs)
		for _, r := range []result{<-first, <-second} {
			if r.err == nil {
				mustRelease(t, r.lease)
			}
		}
		if names := quorum.NamesWaitedFor(c); names != 0 {
			t.Errorf("%d names are waited for by nobody", names)
		}
	})
}
