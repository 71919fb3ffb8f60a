package quorum_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// hurried is who waits for a lock that changes hands every few milliseconds, among others who listen.
type hurried struct {
	*cluster
	c      *quorum.Coordinator
	others int
	each   time.Duration
	takers int // who have the lock in turn; one if 0
	turns  int
}

func (cl *cluster) hurried(others int, each time.Duration) *hurried {
	for _, n := range cl.nodes {
		n.Delay(100 * time.Microsecond)
	}
	cl.bystanders("stock", others)
	own(cl.nodes, "stock", "stranger:0")
	return &hurried{cluster: cl, c: cl.client(quorum.Config{}), others: others, each: each}
}

// pass hands the lock on.
func (h *hurried) pass() {
	time.Sleep(h.each)
	h.turns++
	own(h.nodes, "stock", fmt.Sprintf("stranger-%d:%d", h.turns%max(1, h.takers), h.turns))
	h.announce("stock")
	synctest.Wait()
}

// listens counts the nodes that the waiter listens to.
func (h *hurried) listens() int { return h.listening("stock") - h.others*len(h.nodes) }

// A lock that changes hands every few milliseconds is looked at now and then, and not listened to. Whoever has had no
// luck for half a second listens again, or for half a second more for each but the first of those who listen already, up to four;
// and so does whoever sees that it has stopped.
func TestWaiterOfALockThatIsTooFastStopsListening(t *testing.T) {
	for others, each := range map[int]time.Duration{0: time.Millisecond, 3: 5 * time.Millisecond, 10: 5 * time.Millisecond} {
		t.Run(fmt.Sprint(others, " others listen"), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				h := cl.hurried(others, each)
				got := acquiring(h.c, t.Context(), "stock")
				start := time.Now()
				stopped, again := time.Duration(0), time.Duration(0)
				patience := time.Duration(min(max(1, others), 4)) * 500 * time.Millisecond
				for time.Since(start) < patience+500*time.Millisecond {
					h.pass()
					switch {
					case stopped == 0 && h.turns > 10 && h.listens() == 0:
						stopped = time.Since(start)
					case stopped > 0 && again == 0 && h.listens() == len(cl.nodes):
						again = time.Since(start)
					}
				}
				t.Logf("stopped after %v, listens again after %v", stopped, again)
				if stopped == 0 || stopped > 300*time.Millisecond {
					t.Errorf("stopped listening after %v", stopped)
				}
				if again < patience-100*time.Millisecond || again > patience+400*time.Millisecond {
					t.Errorf("listens again after %v, want %v", again, patience)
				}
				cl.end(h.c, got)
			})
		})
	}
}

// It has stopped: the next looks find the same holder, and the waiter listens again.
func TestWaiterListensAgainToALockThatHasStopped(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		h := cl.hurried(3, 5*time.Millisecond)
		quorum.Fix(h.c, "quick", func() float64 { return 0.001 }) // it looks every 50ms
		got := acquiring(h.c, t.Context(), "stock")
		for h.turns < 20 || h.listens() > 0 {
			if h.turns == 60 {
				t.Fatal("it goes on listening")
			}
			h.pass()
		}
		start := time.Now()
		cl.eventually(200*time.Millisecond, "it listens again", func() bool { return h.listens() == len(cl.nodes) })
		t.Logf("listens again after %v", time.Since(start))
		cl.end(h.c, got)
	})
}
