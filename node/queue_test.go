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

// inQueue runs a test in fake time against a node that is 10 ms away, over so many connections, which are made.
func inQueue(t *testing.T, connections int, test func(t *testing.T, net *faultnet.Node, n *node.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := faultnet.New(t, 1)[0]
		n := net.Open(t, clock.NewPortable(), &faultnet.Cable{}, node.WithConnections(connections))
		net.Delay(5 * time.Millisecond)
		var all sync.WaitGroup
		for i := range connections {
			all.Go(func() { must(t, n, lock(fmt.Sprint("warm ", i)), script.Granted) })
		}
		all.Wait()
		if net.Dials() != connections {
			t.Fatalf("%d connections, want %d", net.Dials(), connections)
		}
		test(t, net, n)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

// One round trip each takes a second where a hundred take turns on one connection.
func TestRequestsShareRoundTrips(t *testing.T) {
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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
	inQueue(t, 2, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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
	first := make(chan struct{})
	f := serve(t, func(c []string) string {
		switch {
		case !strings.HasPrefix(c[0], "EVAL"):
			return ""
		case strings.Contains(strings.Join(c, " "), "bad"):
			return "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
		case strings.Contains(strings.Join(c, " "), "first"):
			<-first
		}
		return granted()
	})
	n := open(t, f.url(), node.WithConnections(1))
	var all sync.WaitGroup
	all.Go(func() { must(t, n, lock("first"), script.Granted) })
	eventually(t, "the first is under way", func() bool { return f.count("EVALSHA") == 1 })
	for i := range 9 {
		all.Go(func() {
			if i != 4 {
				must(t, n, lock(fmt.Sprint("good ", i)), script.Granted)
				return
			}
			_, err := ask(n, lock("bad"), patience)
			wantError(t, err, verdict{refused: true})
		})
	}
	close(first)
	all.Wait()
}

// A server that knows none of the scripts says so of each.
func TestUnknownScriptsInABatchAreSentWithTheirSource(t *testing.T) {
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		net.Restart()
		_, _ = ask(n, lock("finds the connection closed"), patience)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { must(t, n, lock(fmt.Sprint(i)), script.Granted) })
		}
		all.Wait()
	})
}

// Behind a request that hangs, others leave the queue at their own time, and were never sent.
func TestRequestThatWaitsInVainIsNotSent(t *testing.T) {
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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

// Whoever gives up leaves the others their places.
func TestCallersThatLeaveHoldUpNobody(t *testing.T) {
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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

// A node that hangs makes no queue without end.
func TestFullQueueRefuses(t *testing.T) {
	inQueue(t, 1, func(t *testing.T, net *faultnet.Node, n *node.Node) {
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
