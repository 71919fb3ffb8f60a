package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// inBubble runs a test against a miniredis in fake time.
func inBubble(t *testing.T, test func(t *testing.T, net *faultnet.Node, n *node.Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := faultnet.New(t, 1)[0]
		n := net.Open(t, clock.NewPortable(), &faultnet.Cable{})
		test(t, net, n)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A node's clock that was set forward since the last reply makes a request look late. The refusal tells the new time.
func TestNodesClockSetForward(t *testing.T) {
	for _, jump := range []time.Duration{time.Second, time.Hour, 1000 * 24 * time.Hour} {
		inBubble(t, func(t *testing.T, net *faultnet.Node, n *node.Node) {
			must(t, n, lock("a"), script.Granted)
			net.Redis().SetTime(time.Now().Add(jump))
			before := net.Redis().CommandCount()
			must(t, n, lock("b"), script.Granted)
			must(t, n, lock("c"), script.Granted)
			if sent := net.Redis().CommandCount() - before; sent < 3 {
				t.Errorf("%v: two requests and %d commands: none was repeated", jump, sent)
			}
		})
	}
}

func TestNodesClockSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		must(t, n, lock("a"), script.Granted)
		net.Redis().SetTime(time.Now().Add(-time.Hour))
		must(t, n, lock("b"), script.Granted) // the reply tells
		net.Hold()
		if _, err := ask(n, lock("late"), budget); !node.Sent(err) {
			t.Fatalf("a stopped server answered: %v", err)
		}
		// It shows an hour less, and the request is late all the same. The clock of this miniredis stands still.
		net.Redis().SetTime(time.Now().Add(time.Second - time.Hour))
		net.Resume()
		must(t, n, lock("c"), script.Granted)
		if net.Redis().Exists("late") {
			t.Error("a late request took effect")
		}
	})
}

// Once the time is up, an expired request is not repeated.
func TestRequestThatIsLateHereIsNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, net *faultnet.Node, n *node.Node) {
		must(t, n, lock("warm"), script.Granted) // the node knows the script
		for range 2 {
			before := net.Requests()
			got, err := n.Run(t.Context(), lock("a"), n.Clock().Now().Add(-time.Millisecond))
			if err != nil || got.Status != script.Expired {
				t.Errorf("got %+v, %v, want expired", got, err)
			}
			if sent := net.Requests() - before; sent > 2 {
				t.Errorf("%d commands, want the request and what it does, look at the clock", sent)
			}
		}
	})
}

// In fake time the end of a call can be measured to the nanosecond.
func TestRunEndsAtItsDeadlineExactly(t *testing.T) {
	for title, spoil := range map[string]func(*faultnet.Node){
		"stopped":        (*faultnet.Node).Hold,
		"requests lost":  func(f *faultnet.Node) { f.LoseRequests(true) },
		"replies lost":   func(f *faultnet.Node) { f.LoseReplies(true) },
		"far, far away":  func(f *faultnet.Node) { f.Delay(time.Hour) },
		"a bit too slow": func(f *faultnet.Node) { f.Delay(budget/2 + 1) },
	} {
		for _, connected := range []bool{true, false} {
			t.Run(title, func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *faultnet.Node, n *node.Node) {
					if connected {
						must(t, n, lock("a"), script.Granted)
					}
					spoil(net)
					start := time.Now()
					_, err := ask(n, lock("b"), budget)
					if took := time.Since(start); took != budget {
						t.Errorf("took %v, want %v", took, budget)
					}
					wantError(t, err, verdict{timeout: true, sent: connected})
				})
			})
		}
	}
}

// However slow the network is: what the client gave up on has no effect, and what has an effect was in time.
func TestWhateverArrivesLateDoesNothing(t *testing.T) {
	for delay := 10 * time.Millisecond; delay <= 3*budget; delay += 7 * time.Millisecond {
		inBubble(t, func(t *testing.T, net *faultnet.Node, n *node.Node) {
			must(t, n, lock("a"), script.Granted)
			net.Delay(delay)
			until := time.Now().Add(budget)
			_, err := ask(n, lock("b"), budget)
			for time.Now().Before(until.Add(2*delay)) && !net.Redis().Exists("b") {
				time.Sleep(time.Millisecond)
			}
			exists := net.Redis().Exists("b")
			if late := time.Since(until); exists && late > 2*time.Millisecond {
				t.Errorf("a delay of %v: took effect %v after its last moment", delay, late)
			}
			if err == nil && !exists {
				t.Errorf("a delay of %v: granted, and not there", delay)
			}
		})
	}
}
