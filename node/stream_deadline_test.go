package node_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// Behind a request that hangs, others leave the queue at their own time, and were never sent.
func TestRequestThatWaitsInVainIsNotSent(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		net.Hold()
		var all sync.WaitGroup
		all.Go(func() {
			_, err := ask(n, lock("first"), time.Second)
			wantError(t, err, verdict{sent: true, timeout: true})
		})
		synctest.Wait()
		start := time.Now()
		for i := range 100 {
			all.Go(func() {
				_, err := ask(n, lock(fmt.Sprint("late ", i)), 100*time.Millisecond)
				wantError(t, err, verdict{timeout: true})
				if took := time.Since(start); took != 100*time.Millisecond {
					t.Errorf("took %v, of 100ms", took)
				}
			})
		}
		all.Wait()
		net.Resume()
		must(t, n, lock("next"), script.Granted)
		for _, key := range net.Redis().Keys() {
			if strings.HasPrefix(key, "late") {
				t.Errorf("%q was sent", key)
			}
		}
	})
}

// The last moment passes while a request waits for others, and its caller has time left.
func TestRequestThatExpiresInTheQueueIsNotSent(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		net.Hold()
		var all sync.WaitGroup
		all.Go(func() { _, _ = ask(n, lock("first"), 200*time.Millisecond) })
		synctest.Wait()
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := n.Run(ctx, lock("late"), n.Clock().Now().Add(100*time.Millisecond))
			wantError(t, err, verdict{})
		})
		all.Go(func() { // begins while the node still hangs, and has time
			time.Sleep(150 * time.Millisecond)
			must(t, n, lock("in time"), script.Granted)
		})
		time.Sleep(250 * time.Millisecond)
		net.Resume()
		all.Wait()
		if net.Redis().Exists("late") {
			t.Error("it was sent")
		}
	})
}

// A request that may take effect at any time does not expire in the queue.
func TestRequestWithoutALastMomentWaitsItsTurn(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		var all sync.WaitGroup
		all.Go(func() { must(t, n, lock("first"), script.Granted) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := n.Run(ctx, lock("any time"), clock.Instant{}); err != nil || got.Status != script.Granted {
			t.Errorf("%+v, %v", got, err)
		}
		all.Wait()
	})
}

// timesOut makes a request that is not answered, and ends when its own time is up.
func timesOut(t *testing.T, n *node.Node, budget time.Duration, want verdict) {
	t.Helper()
	start := time.Now()
	_, err := ask(n, lock(budget.String()), budget)
	wantError(t, err, want)
	if took := time.Since(start); took != budget {
		t.Errorf("took %v, of %v", took, budget)
	}
}

// A request that shares a round trip does not wait for the time that others have, and takes none from them.
func TestRequestsOfABatchEndAtTheirOwnDeadlines(t *testing.T) {
	for _, budgets := range [][]time.Duration{
		{100 * time.Millisecond, time.Second, 500 * time.Millisecond}, {time.Second, 100 * time.Millisecond},
	} {
		inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
			var all sync.WaitGroup
			all.Go(func() { must(t, n, lock("first"), script.Granted) })
			synctest.Wait()
			for _, d := range budgets {
				all.Go(func() { timesOut(t, n, d, verdict{sent: true, timeout: true}) })
				synctest.Wait()
			}
			time.Sleep(12 * time.Millisecond) // the first is back, and they are under way
			net.Hold()
			all.Wait()
			net.Resume()
			must(t, n, lock("next"), script.Granted)
		})
	}
}

// Who waits for a new connection waits no longer than its own time.
func TestRequestsThatWaitForAConnectionEndAtTheirOwnDeadlines(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		var all sync.WaitGroup
		all.Go(func() { _, _ = ask(n, lock("first"), patience) })
		synctest.Wait()
		for _, d := range []time.Duration{100 * time.Millisecond, time.Second} {
			all.Go(func() { timesOut(t, n, d, verdict{timeout: true}) })
			synctest.Wait()
		}
		net.Hold()
		net.Break() // the connection of the first
		all.Wait()
		net.Resume()
		must(t, n, lock("next"), script.Granted)
	})
}

// What its caller has left is not sent, though its last moment has not come.
func TestRequestLeftInTheQueueHasNoEffect(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		var all sync.WaitGroup
		all.Go(func() { _, _ = ask(n, lock("first"), patience) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		all.Go(func() {
			_, err := n.Run(ctx, lock("left"), n.Clock().Now().Add(patience))
			wantError(t, err, verdict{timeout: true})
		})
		all.Go(func() { must(t, n, lock("stays"), script.Granted) })
		synctest.Wait()
		net.Hold()
		net.Break()
		time.Sleep(50 * time.Millisecond) // they wait for the connection
		cancel()
		synctest.Wait()
		net.Resume()
		all.Wait()
		if net.Redis().Exists("left") {
			t.Error("it took effect")
		}
	})
}

// A caller that has all the time there is waits its turn like others.
func TestRequestsWithoutADeadlineShareRoundTrips(t *testing.T) {
	inStream(t, 1, func(t *testing.T, _ *faultnet.Node, n *node.Node) {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if i%3 == 0 {
					must(t, n, lock(fmt.Sprint(i)), script.Granted)
					return
				}
				got, err := n.Run(context.Background(), lock(fmt.Sprint(i)), clock.Instant{})
				if err != nil || got.Status != script.Granted {
					t.Errorf("got %+v, %v, want granted", got, err)
				}
			})
		}
		all.Wait()
	})
}

// While an answer is overdue nothing is sent behind it: it would be as late. The connection goes when nobody waits for
// anything on it, and then the others have their chance.
func TestNothingIsSentBehindAnOverdueAnswer(t *testing.T) {
	inStream(t, 3, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		net.Hold()
		var all sync.WaitGroup
		all.Go(func() { timesOut(t, n, 100*time.Millisecond, verdict{sent: true, timeout: true}) })
		synctest.Wait()
		all.Go(func() { timesOut(t, n, 300*time.Millisecond, verdict{sent: true, timeout: true}) })
		time.Sleep(150 * time.Millisecond)
		all.Go(func() { timesOut(t, n, 80*time.Millisecond, verdict{timeout: true}) })
		all.Go(func() { must(t, n, lock("in time"), script.Granted) })
		time.Sleep(170 * time.Millisecond) // the connection is gone
		net.Resume()
		all.Wait()
	})
}
