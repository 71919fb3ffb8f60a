package quorum_test

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/simulation"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// A throng is many processes that want one lock, over five nodes half a millisecond away.
type throng struct {
	processes int
	turns     int           // of each
	hold      time.Duration // how long each keeps the lock
	pause     time.Duration // and stays away before the next turn
}

// rush is how it went.
type rush struct {
	took    time.Duration
	longest time.Duration   // that anybody waited
	turns   []time.Duration // when each process had its last turn
	scripts float64         // for each acquisition, on each node
	held    int             // of these, questions that were answered "held"
}

func (th throng) run(t *testing.T) (r rush) {
	t.Helper()
	const nodes = 5
	inOneThread(func() {
		synctest.Test(t, func(t *testing.T) {
			weather := simulation.Weather{Latency: 250 * time.Microsecond, Tail: 0.01, LateBy: 2 * time.Millisecond}
			w := simulation.New(1, nodes, th.processes, weather)
			var all []*quorum.Coordinator
			for i := range th.processes {
				client := w.Client(i)
				var ns []*node.Node
				for j := range nodes {
					n, err := node.New(&redis.Options{
						Addr: w.Node(j).Name(), Dialer: client.Dialer(j), ReadBufferSize: 512, WriteBufferSize: 512,
					}, node.WithClock(client.Clock()))
					if err != nil {
						t.Fatal(err)
					}
					ns = append(ns, n)
				}
				c, err := quorum.New(ns, quorum.Config{Clock: client.Clock(), Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
			// All have connections before it begins, and know how far the nodes are.
			for _, c := range all {
				mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
			}
			time.Sleep(time.Second)

			before, start := w.Counts(), time.Now()
			r.turns = make([]time.Duration, len(all))
			var mu sync.Mutex
			var group sync.WaitGroup
			holders := 0
			for i, c := range all {
				group.Go(func() {
					for range th.turns {
						asked := time.Now()
						l, err := c.Acquire(t.Context(), "stock")
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if holders++; holders > 1 {
							t.Error("two holders")
						}
						r.longest = max(r.longest, time.Since(asked))
						r.turns[i] = time.Since(start)
						mu.Unlock()
						time.Sleep(th.hold)
						mu.Lock()
						holders--
						mu.Unlock()
						mustRelease(t, l)
						time.Sleep(th.pause)
					}
				})
			}
			group.Wait()
			r.took = time.Since(start)
			after, sum := w.Counts(), 0
			for what, n := range after.Scripts {
				sum += n - before.Scripts[what]
				if d := n - before.Scripts[what]; d > 0 {
					t.Logf("%s %.2f", what, float64(d)/float64(nodes*th.processes*th.turns))
				}
			}
			r.held = after.Scripts["acquire held"] - before.Scripts["acquire held"]
			r.scripts = float64(sum) / float64(nodes*th.processes*th.turns)
			for _, c := range all {
				group.Go(func() { _ = c.Close() })
			}
			group.Wait()
		})
	})
	return r
}

func TestThrong(t *testing.T) {
	for _, th := range []throng{
		{2, 50, 20 * time.Millisecond, 0},
		{3, 50, 20 * time.Millisecond, 0},
		{16, 20, 0, 0},
		{16, 20, time.Millisecond, 0},
		{16, 20, 5 * time.Millisecond, 0},
		{16, 20, 20 * time.Millisecond, 0},
		{16, 20, 100 * time.Millisecond, 0},
		//{128, 3, 20 * time.Millisecond, 0},
		{128, 3, 0, 0},
		//{500, 1, 20 * time.Millisecond, 0},
		{500, 1, 0, 0},
	} {
		s := time.Now()
		r := th.run(t)
		n := th.processes * th.turns
		t.Logf("%+v: took %v, %v beyond the holds each, longest wait %v, %.2f scripts, (%v)", th, r.took, r.took/time.Duration(n)-th.hold, r.longest, r.scripts, time.Since(s))
	}
}
