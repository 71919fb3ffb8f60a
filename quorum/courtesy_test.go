package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// bystanders make it look on every node as if so many others waited for a lock. They never come for it. They come before the
// clients, and so go after them: miniredis does not bear that one goes while it is told of a release.
func (cl *cluster) bystanders(name string, n int) {
	for range n {
		for _, node := range cl.nodes {
			sub := node.Redis().NewSubscriber()
			cl.t.Cleanup(sub.Close)
			sub.Subscribe(script.Channel(name))
			go func() {
				for range sub.Messages() { // who does not read keeps the publisher waiting
				}
			}()
		}
	}
}

// scripts counts the scripts that node 0 is asked to run from now on.
func (cl *cluster) scripts() *atomic.Int64 {
	var n atomic.Int64
	srv := cl.nodes[0].Redis().Server()
	srv.SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
		if cmd == "EVALSHA" {
			n.Add(1)
		}
		return false
	})
	cl.t.Cleanup(func() { srv.SetPreHook(nil) })
	return &n
}

// announce publishes that a lock is free, on all nodes.
func (cl *cluster) announce(name string) {
	for _, n := range cl.nodes {
		n.Redis().Publish(script.Channel(name), script.Free)
	}
}

// A process that takes a lock again and again lets another one in: after a turn of 50ms, and then with some luck, since
// both draw a moment. Where it has the lock too shortly to be listened to, half a second comes on top.
func TestProcessThatHadItForATurnLetsOthersIn(t *testing.T) {
	needsLong(t)
	for hold, limit := range map[time.Duration][2]time.Duration{ // on average, and the unluckiest of 20
		30 * time.Millisecond: {200 * time.Millisecond, 700 * time.Millisecond},
		10 * time.Millisecond: {700 * time.Millisecond, 1200 * time.Millisecond},
	} {
		t.Run(hold.String(), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				for _, n := range cl.nodes {
					n.Delay(time.Millisecond)
				}
				greedy, modest := cl.client(quorum.Config{}), cl.client(quorum.Config{})
				quorum.Fix(greedy, "greedy", rand.New(rand.NewPCG(1, 1)).Float64)
				quorum.Fix(modest, "modest", rand.New(rand.NewPCG(1, 2)).Float64)
				warm(t, greedy, modest)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					for ctx.Err() == nil {
						l := mustWait(t, greedy, "stock")
						time.Sleep(hold)
						mustRelease(t, l)
					}
				}()
				time.Sleep(time.Second)
				var longest, sum time.Duration
				for range 20 {
					start := time.Now()
					l := mustWait(t, modest, "stock")
					longest, sum = max(longest, time.Since(start)), sum+time.Since(start)
					mustRelease(t, l)
					time.Sleep(time.Second) // it is forgotten
				}
				t.Logf("on average %v, at most %v", sum/20, longest)
				if sum/20 > limit[0] || longest > limit[1] {
					t.Errorf("the other one had to wait for %v on average, and for %v", sum/20, longest)
				}
				stop()
				<-done
			})
		})
	}
}

// warm has clients know how far the nodes are, and not only how long it takes to connect to them.
func warm(t *testing.T, clients ...*quorum.Coordinator) {
	t.Helper()
	for range 30 {
		for _, c := range clients {
			mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		}
	}
}

// Whoever has but a moment tries within it, although good manners would have it stay away for longer.
func TestCourtesyDoesNotKeepAShortWaitFromTrying(t *testing.T) {
	const moment = 40 * time.Millisecond
	for title, acquire := range map[string]func(c *quorum.Coordinator, ctx context.Context) (*quorum.Lease, error){
		"wait time": func(c *quorum.Coordinator, ctx context.Context) (*quorum.Lease, error) {
			return c.Acquire(ctx, "stock", quorum.WithWaitTime(moment))
		},
		"deadline": func(c *quorum.Coordinator, ctx context.Context) (*quorum.Lease, error) {
			ctx, cancel := context.WithTimeout(ctx, moment)
			defer cancel()
			return c.Acquire(ctx, "stock")
		},
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				cl.bystanders("stock", 100)
				c := cl.client(quorum.Config{})
				quorum.Fix(c, "polite", func() float64 { return 0.999 }) // the last moment of all
				for range 2 {
					l := mustWait(t, c, "stock")
					time.Sleep(100 * time.Millisecond) // longer than a turn
					mustRelease(t, l)
					l, err := acquire(c, t.Context())
					if err != nil {
						t.Fatal(err)
					}
					mustRelease(t, l)
				}
				// Who has time stays away.
				l := mustWait(t, c, "stock")
				time.Sleep(100 * time.Millisecond)
				mustRelease(t, l)
				start := time.Now()
				mustRelease(t, mustWait(t, c, "stock"))
				if took := time.Since(start); took < moment {
					t.Errorf("who gave it back to a hundred others had it again after %v", took)
				}
			})
		})
	}
}

// The same for those who stand behind whoever leaves the lock to others.
func TestCourtesyOfTheHeadDoesNotKeepThoseBehindItFromTrying(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		cl.bystanders("stock", 100)
		c := cl.client(quorum.Config{})
		quorum.Fix(c, "polite", func() float64 { return 0.999 })
		warm(t, c)
		l := mustWait(t, c, "stock")
		time.Sleep(100 * time.Millisecond)
		mustRelease(t, l)
		head := acquiring(c, t.Context(), "stock")
		time.Sleep(time.Millisecond)
		second := acquiring(c, t.Context(), "stock", quorum.WithWaitTime(500*time.Millisecond))
		mustRelease(t, (<-head).must(t))
		mustRelease(t, (<-second).must(t))
	})
}

// Whoever has left the lock to others, and never gets it back, is told that they have it: it has asked every node before its time
// is over.
func TestCourtesyEndsWithTheWordOfEveryNode(t *testing.T) {
	for _, wait := range []time.Duration{100 * time.Millisecond, 5 * time.Second} {
		inBubble(t, 3, func(t *testing.T, cl *cluster) {
			for _, n := range cl.nodes {
				n.Delay(time.Millisecond)
			}
			c, other := cl.warmClient(quorum.Config{}), cl.warmClient(quorum.Config{})
			l := mustAcquire(t, c, t.Context(), "stock")
			taken := acquiring(other, t.Context(), "stock")
			time.Sleep(time.Second)
			mustRelease(t, l)
			theirs := (<-taken).must(t)
			_, err := c.Acquire(t.Context(), "stock", quorum.WithWaitTime(wait))
			wantIs(t, err, quorum.ErrNotAcquired)
			wantIsNot(t, err, quorum.ErrNoQuorum)
			var votes *quorum.QuorumError
			if !errors.As(err, &votes) {
				t.Fatalf("%T is no QuorumError", err)
			}
			for _, v := range votes.Votes {
				if v.Outcome != quorum.Held || v.Holder != theirs.Holder() {
					t.Errorf("%v", v)
				}
			}
			mustRelease(t, theirs)
		})
	}
}

// The same where the lock goes round so fast that nobody listens.
func TestCourtesyToAFastCrowdEndsWithTheWordOfEveryNode(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		h := cl.acquainted(16, 20, 5*time.Millisecond, 0.001)
		scripts := cl.scripts()
		got := acquiring(h.c, t.Context(), "stock", quorum.WithWaitTime(time.Second))
		for start := time.Now(); time.Since(start) < 990*time.Millisecond; {
			if h.pass(); time.Since(start) < 700*time.Millisecond && h.listens() > 0 {
				t.Fatal("it listens: this shows nothing")
			}
		}
		if scripts.Load() == 0 {
			t.Error("it has not asked all nodes")
		}
		wantIs(t, (<-got).err, quorum.ErrNotAcquired)
	})
}

// Nobody has the lock, but the node that is looked at has the key of somebody who died.
func TestCourtesyToTheDeadDoesNotKeepFromTrying(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		cl.bystanders("stock", 1)
		c := cl.client(quorum.Config{})
		quorum.Fix(c, "polite", func() float64 { return 0.01 })
		warm(t, c)
		own(cl.nodes[:2], "stock", "dead:1")
		l := mustWait(t, c, "stock")
		time.Sleep(100 * time.Millisecond)
		mustRelease(t, l)
		l, err := c.Acquire(t.Context(), "stock", quorum.WithWaitTime(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
	})
}

// Nobody else waits: then nobody is waited for.
func TestProcessThatNobodyWaitsForGoesOnAtFullSpeed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(time.Millisecond)
		}
		c := cl.client(quorum.Config{})
		mustRelease(t, mustWait(t, c, "stock"))
		for range 100 {
			start := time.Now()
			l := mustWait(t, c, "stock")
			if took := time.Since(start); took > 3*time.Millisecond { // a round trip and half of one
				t.Fatalf("an acquire took %v", took)
			}
			mustRelease(t, l)
		}
	})
}

// waitAmong waits for a lock that a stranger has, so far from the nodes, among so many others, until it listens. The counter is of scripts from
// then on.
func (cl *cluster) waitAmong(others int, away time.Duration) (*quorum.Coordinator, <-chan result, *atomic.Int64) {
	cl.t.Helper()
	for _, n := range cl.nodes {
		n.Delay(away)
	}
	cl.bystanders("stock", others)
	own(cl.nodes, "stock", "stranger:1")
	c := cl.client(quorum.Config{})
	got := acquiring(c, cl.t.Context(), "stock")
	time.Sleep(5 * time.Second)
	synctest.Wait()
	return c, got, cl.scripts()
}

// end ends a wait that nobody should have won.
func (cl *cluster) end(c *quorum.Coordinator, got <-chan result) {
	cl.t.Helper()
	select {
	case r := <-got:
		cl.t.Fatalf("had it, or failed: %v", r.err)
	default:
	}
	_ = c.Close()
	wantIs(cl.t, (<-got).err, quorum.ErrClosed)
}

// Of several who are woken one comes first. The others look, see that somebody else has it, and send no script.
func TestLookThatFindsTheLockTakenCostsNoScript(t *testing.T) {
	// A look that was under way when somebody came finds who it is, and then the wake seems to have changed nothing: a look is a poll
	// once a second and takes two ways.
	for away, most := range map[time.Duration]int64{time.Millisecond: 2, 15 * time.Millisecond: 4} {
		t.Run(away.String(), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				c, got, scripts := cl.waitAmong(3, away)
				for i := range 30 {
					own(cl.nodes, "stock", fmt.Sprint("quicker:", i))
					cl.announce("stock")
					time.Sleep(time.Second)
				}
				if n := scripts.Load(); n > most {
					t.Errorf("%d scripts for a lock that others had", n)
				}
				cl.end(c, got)
			})
		})
	}
}

// A wake that changes nothing where the look looks may be one of other nodes: then only a try tells.
func TestWakeThatChangesNothingIsTried(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c, got, scripts := cl.waitAmong(3, time.Millisecond)
		time.Sleep(2 * time.Second) // it has looked who has it
		cl.announce("stock")
		time.Sleep(time.Second)
		if scripts.Load() == 0 {
			t.Error("not tried")
		}
		cl.end(c, got)
	})
}

// Who waits alone comes at once when it is woken; among many it comes at a moment of its own.
func TestDelayAfterAWakeGrowsWithTheCrowd(t *testing.T) {
	for others, wait := range map[int][2]time.Duration{
		0: {0, 10 * time.Millisecond}, 20: {100 * time.Millisecond, 900 * time.Millisecond}, 500: {900 * time.Millisecond, 1100 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				for _, n := range cl.nodes {
					n.Delay(time.Millisecond)
				}
				cl.bystanders("stock", others)
				own(cl.nodes, "stock", "stranger:1")
				c := cl.client(quorum.Config{})
				quorum.Fix(c, "unlucky", func() float64 { return 0.999 })
				warm(t, c)
				got := acquiring(c, t.Context(), "stock")
				time.Sleep(10*time.Second + 200*time.Millisecond) // right after a poll, which comes every 1.5s
				for _, n := range cl.nodes {
					n.Redis().Del("stock")
				}
				cl.announce("stock")
				start := time.Now()
				r := <-got
				if r.err != nil {
					t.Fatal(r.err)
				}
				if took := time.Since(start); took < wait[0] || took > wait[1] {
					t.Errorf("came after %v, want %v to %v", took, wait[0], wait[1])
				}
				mustRelease(t, r.lease)
			})
		})
	}
}
