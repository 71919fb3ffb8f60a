package node_test

import (
	"context"
	"errors"
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

// inStream runs a test in fake time against a node that is 10 ms away, with so many batches at once, over a connection that
// is made.
func inStream(t *testing.T, batches int, test func(t *testing.T, net *faultnet.Node, n *node.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := faultnet.New(t, 1)[0]
		n := net.Open(t, clock.NewPortable(), &faultnet.Cable{}, node.WithBatches(batches))
		net.Delay(5 * time.Millisecond)
		must(t, n, lock("warm"), script.Granted)
		if net.Dials() != 1 {
			t.Fatalf("%d connections, want 1", net.Dials())
		}
		test(t, net, n)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

// One round trip each takes a second where a hundred take turns on one connection.
func TestRequestsShareRoundTrips(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		start := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { must(t, n, lock(fmt.Sprint(i)), script.Granted) })
		}
		all.Wait()
		// The first goes alone, 64 with the next round trip, and the rest with the third.
		if took := time.Since(start); took > 30*time.Millisecond {
			t.Errorf("a hundred requests took %v, of round trips of 10ms", took)
		}
		if net.Dials() != 1 {
			t.Errorf("%d connections, want 1", net.Dials())
		}
	})
}

// Nobody waits for company.
func TestLoneRequestLeavesAtOnce(t *testing.T) {
	inStream(t, 2, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		for i := range 10 {
			start := time.Now()
			must(t, n, lock(fmt.Sprint(i)), script.Granted)
			if took := time.Since(start); took != 10*time.Millisecond {
				t.Errorf("took %v, of a round trip of 10ms", took)
			}
		}
	})
}

// What the server says of one request in a batch concerns that one alone.
func TestAnswersOfABatchAreEachOnesOwn(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		for i := range 20 {
			if i%2 == 0 {
				net.Redis().HSet(fmt.Sprint(i), "somebody:1", "1")
			}
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				want := []script.Status{script.Held, script.Granted}[i%2]
				got, err := ask(n, lock(fmt.Sprint(i)), patience)
				if err != nil || got.Status != want || want == script.Held && got.Holder != "somebody:1" {
					t.Errorf("request %d: %+v, %v, want %s", i, got, err, want)
				}
			})
		}
		all.Wait()
	})
}

func TestErrorOfOneInABatchIsNotTheOthers(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		if _, err := net.Redis().Lpush(script.FenceKey("4"), "no fence"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() { must(t, n, lock("first"), script.Granted) })
		synctest.Wait()
		for i := range 9 {
			all.Go(func() {
				if i != 4 {
					must(t, n, lock(fmt.Sprint(i)), script.Granted)
					return
				}
				_, err := ask(n, lock("4"), patience)
				wantError(t, err, verdict{refused: true})
			})
		}
		all.Wait()
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("took %v, want two round trips of 10ms: one for the first, one for all others", took)
		}
	})
}

// A server that knows none of the scripts says so of each.
func TestUnknownScriptsInABatchAreSentWithTheirSource(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		net.Restart()
		_, _ = ask(n, lock("finds the connection closed"), patience)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { must(t, n, lock(fmt.Sprint(i)), script.Granted) })
		}
		all.Wait()
	})
}

// Whoever gives up leaves the others their places.
func TestCallersThatLeaveHoldUpNobody(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		var all sync.WaitGroup
		for round := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() { must(t, n, lock(fmt.Sprint("first ", round)), script.Granted) })
			synctest.Wait()
			for i := range 5 {
				all.Go(func() { _, _ = n.Run(ctx, lock(fmt.Sprint("gone ", i)), clock.Instant{}) })
			}
			synctest.Wait()
			all.Go(func() { must(t, n, lock(fmt.Sprint("last ", round)), script.Granted) })
			// Before, while and after the first comes back and the next batch leaves.
			time.Sleep(time.Duration(round) * time.Millisecond / 2)
			cancel()
			all.Wait()
		}
	})
}

// A connection that breaks takes the whole batch with it; nobody knows what the server did.
func TestBrokenConnectionEndsItsBatch(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		var all sync.WaitGroup
		all.Go(func() { must(t, n, lock("first"), script.Granted) })
		synctest.Wait()
		for i := range 10 {
			all.Go(func() {
				_, err := ask(n, lock(fmt.Sprint(i)), patience)
				wantError(t, err, verdict{sent: true})
			})
		}
		time.Sleep(12 * time.Millisecond) // they are under way
		net.Kill()
		all.Wait()
		net.Start(true)
		must(t, n, lock("next"), script.Granted)
	})
}

// A connection that the server closed before anything was written on it loses no request.
func TestRequestOfWhichNothingWasWrittenGoesOutAgain(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		for range 10 {
			net.Break() // and nobody has had the time to notice
			must(t, n, lock("a"), script.Granted)
			must(t, n, unlock("a"), script.Released)
		}
	})
}

// An answer to nothing is no answer to what is asked next.
func TestAnswerThatNobodyAskedForEndsTheConnection(t *testing.T) {
	f := serve(t, on("EVALSHA", granted()+granted()))
	n := open(t, f.url())
	for range 3 {
		_, _ = ask(n, lock("a"), patience) // which of the two it was, nobody can tell
	}
	eventually(t, "connections are given up", func() bool { return len(f.said()) >= 2 })
}

// A node that hangs makes no queue without end.
func TestFullQueueRefuses(t *testing.T) {
	inStream(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		net.Hold()
		var mu sync.Mutex
		refused := 0
		var all sync.WaitGroup
		for range 16384 + 1 + 10 {
			all.Go(func() {
				_, err := ask(n, lock("a"), time.Second)
				var e *node.Error
				if errors.As(err, &e) && strings.Contains(e.Error(), "too many requests") {
					mu.Lock()
					refused++
					mu.Unlock()
					wantError(t, err, verdict{})
				}
			})
		}
		all.Wait()
		if refused != 10 {
			t.Errorf("%d were refused, want 10", refused)
		}
		net.Resume()
		must(t, n, lock("next"), script.Granted)
	})
}
