package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

func TestTracerIsToldOfALeaseFromBeginningToEnd(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c, tr := cl.traced(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(10 * time.Millisecond)
		}
		l, err := c.Acquire(t.Context(), "stock")
		if err != nil {
			t.Fatal(err)
		}
		wantTold(t, tr.take(),
			"acquire stock",
			"attempt acquire stock after=20ms ok < acquire",
			"hold stock < acquire",
			"acquire-end stock lease=true nested=false handed=false after=20ms ok < acquire")
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantTold(t, tr.take(), fmt.Sprintf("renewal stock asked=true left=%v ok < hold", l.Remaining()))
		synctest.Wait()
		time.Sleep(ttl / 2)
		synctest.Wait()
		if renewals := tr.take(); len(renewals) != 1 || !contains(renewals[0], "renewal stock asked=false", "ok < hold") {
			t.Errorf("told %q, want one renewal", renewals)
		}
		mustRelease(t, l)
		lines := tr.take()
		if len(lines) != 3 || lines[0] != "release stock" || !contains(lines[1], "hold-end stock after=15.0", "loss=none", "lease released < hold") ||
			lines[2] != "release-end stock handed=false after=20ms ok < release" {
			t.Errorf("told %q", lines)
		}
		wantIs(t, l.Release(t.Context()), quorum.ErrReleased)
		wantTold(t, tr.take(), "release stock", "release-end stock handed=false after=0s redquorum: lease released < release")
		synctest.Wait()
		if want := map[string]int{"acquire granted": 6, "renew granted": 6, "release granted": 6}; !equalVotes(tr, want) {
			t.Errorf("votes %v, want %v", tr.votes, want)
		}
	})
}

// equalVotes compares the votes that were told; those of the first lease, that made the client warm, are among them.
func equalVotes(tr *told, want map[string]int) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for what, n := range want {
		if tr.votes[what] != n {
			return false
		}
	}
	return len(tr.votes) == len(want)
}

func TestTracerIsToldOfAWait(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		other := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		c, tr := cl.traced(quorum.Config{})
		var group sync.WaitGroup
		leases := make(chan *quorum.Lease)
		for range 2 {
			group.Go(func() {
				l, err := c.Acquire(t.Context(), "stock")
				if err != nil {
					t.Error(err)
				}
				leases <- l
			})
			synctest.Wait()
		}
		group.Go(func() {
			_, err := c.Acquire(t.Context(), "stock", quorum.WithWaitTime(time.Second))
			wantIs(t, err, quorum.ErrNotAcquired)
		})
		synctest.Wait()
		if n := c.Stats().Waiting; n != 3 {
			t.Errorf("%d wait, want 3", n)
		}
		wantTold(t, tr.take("attempt"), "acquire stock", "wait stock place=0 < acquire", "acquire stock", "wait stock place=1 < acquire",
			"acquire stock", "wait stock place=2 < acquire")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantTold(t, tr.take("attempt"), "wait-end stock handed=false after=1s redquorum: not acquired, held by others < wait",
			"acquire-end stock lease=false nested=false handed=false after=1s redquorum: not acquired, held by others < acquire")
		time.Sleep(time.Second)
		mustRelease(t, other)
		first := <-leases
		lines := tr.take("attempt")
		if len(lines) != 3 || !contains(lines[0], "wait-end stock handed=false after=3s ok < wait") || lines[1] != "hold stock < acquire" {
			t.Errorf("told %q", lines)
		}
		synctest.Wait()
		mustRelease(t, first) // the nodes were asked for a token for the other
		lines = tr.take("attempt")
		second := <-leases
		lines = append(lines, tr.take("attempt")...)
		if text := strings.Join(lines, "\n"); !contains(text, "release-end stock handed=true after=0s ok < release",
			"wait-end stock handed=true", "acquire-end stock lease=true nested=false handed=true") {
			t.Errorf("told\n%s", text)
		}
		if n := c.Stats().Waiting; n != 0 {
			t.Errorf("%d wait, want none", n)
		}
		mustRelease(t, second)
		group.Wait()
	})
}

func TestTracerIsToldOfALossOnceAndOfTheEndOfEveryHold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c, tr := cl.traced(quorum.Config{})
		outer := mustAcquire(t, c, t.Context(), "stock")
		inner := mustAcquire(t, c, outer.Context(t.Context()), "stock")
		if lines := tr.take("attempt"); len(lines) != 6 || !contains(lines[5], "nested=true") {
			t.Errorf("told %q", lines)
		}
		synctest.Wait()
		own(cl.nodes, "stock", "stranger:1")
		if err := inner.Renew(t.Context()); !errors.Is(err, quorum.ErrLost) {
			t.Fatalf("renewed: %v", err)
		}
		synctest.Wait()
		lines := tr.take()
		slices.Sort(lines)
		if len(lines) != 4 || !contains(lines[0], "hold-end stock", "loss=outvoted redquorum: lease lost < hold") || lines[0] != lines[1] ||
			lines[2] != "loss stock outvoted" || !contains(lines[3], "renewal stock asked=true left=0s redquorum: lease lost") {
			t.Errorf("told\n%s", strings.Join(lines, "\n"))
		}
	})
}

// Whatever ends a lease has a name of its own.
func TestLossesHaveReasons(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		limited, tr := cl.traced(quorum.Config{MaxHold: 2 * ttl})
		mustAcquire(t, limited, t.Context(), "limited")
		mustAcquire(t, limited, t.Context(), "leased", quorum.WithLeaseTime(time.Second))
		time.Sleep(2 * ttl)
		synctest.Wait()
		c, down := cl.traced(quorum.Config{})
		mustAcquire(t, c, t.Context(), "down")
		for _, n := range cl.nodes {
			n.LoseRequests(true)
		}
		time.Sleep(ttl)
		synctest.Wait()
		for _, n := range cl.nodes {
			n.LoseRequests(false)
		}
		losses := func(tr *told) (losses []string) {
			for _, line := range tr.take() {
				if strings.HasPrefix(line, "loss") {
					losses = append(losses, line)
				}
			}
			return losses
		}
		wantTold(t, losses(tr), "loss leased lease-time", "loss limited max-hold")
		wantTold(t, losses(down), "loss down not-renewed")
	})
}

// A tracer is told of the coordinator's beginning and end, and of the end of what Close releases.
func TestTracerIsToldOfClose(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		tr := &told{}
		c := cl.client(quorum.Config{Tracer: tr})
		wantTold(t, tr.take(), "open 3")
		mustAcquire(t, c, t.Context(), "stock")
		synctest.Wait() // until every node has answered
		tr.take()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantTold(t, tr.take(), "hold-end stock after=0s loss=none redquorum: lease released < hold", "close 0")
	})
}

// hasty is a tracer that gives a lease back as soon as it hears of it.
type hasty struct{ *told }

func (tr hasty) TraceHoldStart(ctx context.Context, d quorum.TraceHoldStartData) context.Context {
	ctx = tr.told.TraceHoldStart(ctx, d)
	_ = d.Lease.Release(ctx)
	return ctx
}

func TestLeaseThatEndsAtOnceHasABeginningAndAnEnd(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		tr := &told{}
		l := mustAcquire(t, cl.client(quorum.Config{Tracer: hasty{tr}}), t.Context(), "stock")
		wantIs(t, l.Err(), quorum.ErrReleased)
		wantTold(t, tr.take("open", "attempt", "node", "release"), "try-acquire stock", "hold stock < try-acquire",
			"hold-end stock after=0s loss=none redquorum: lease released < hold",
			"try-acquire-end stock lease=true nested=false handed=false after=0s ok < try-acquire")
	})
}

// Any method may ask anything: nobody holds a mutex. Were one held, the bubble would find everybody asleep.
func TestTracerMayAskTheCoordinatorAnything(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c, tr := cl.traced(quorum.Config{})
		var lease atomic.Pointer[quorum.Lease]
		tr.mu.Lock()
		tr.during = func() {
			_ = c.Stats()
			if l := lease.Load(); l != nil {
				_, _, _ = l.HoldCount(), l.Remaining(), l.Votes()
			}
		}
		tr.mu.Unlock()
		l := mustAcquire(t, c, t.Context(), "stock")
		lease.Store(l)
		mustAcquire(t, c, l.Context(t.Context()), "stock")
		next := make(chan *quorum.Lease)
		go func() { next <- mustWait(t, c, "other") }()
		mustRelease(t, <-next)
		own(cl.nodes, "stock", "stranger:1")
		cl.nodes[0].Kill()
		time.Sleep(ttl)
		synctest.Wait()
		wantIs(t, l.Err(), quorum.ErrLost)
		if text := strings.Join(tr.take(), "\n"); !contains(text, "loss stock", "node ", "renewal", "hold-end") {
			t.Errorf("told\n%s", text)
		}
	})
}

// Who only wants to know one thing implements one interface.
func TestTracerNeedNotImplementEverything(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		tr := &told{}
		c := cl.client(quorum.Config{Tracer: struct{ quorum.AcquireTracer }{tr}})
		l := mustWait(t, c, "stock")
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantTold(t, tr.take(), "acquire stock", "acquire-end stock lease=true nested=false handed=false after=0s ok < acquire")
		if len(tr.votes) > 0 {
			t.Errorf("votes %v", tr.votes)
		}
	})
}

func TestNoTracerCostsNoAllocation(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.warmClient(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		if n := quorum.UntracedAllocations(l); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
