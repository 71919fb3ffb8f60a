package quorum_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/simulation"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// near is a network of one data centre: half a millisecond there and back, and now and then a packet that is late.
var near = simulation.Weather{Latency: 250 * time.Microsecond, Tail: 0.01, LateBy: 2 * time.Millisecond}

// thousand is how many processes the largest crowd has when nobody says how many: what a few seconds allow.
var thousand = 500

var (
	crowdSeed = flag.Uint64("crowd.seed", 1, "crowds: the seed of what is drawn")
	crowdSize = flag.Int("crowd.processes", 0, "crowds: how many processes the largest one has; default 500, or 125 with -race")
)

// A throng is many processes that want one lock.
type throng struct {
	processes int
	turns     int           // of each
	hold      time.Duration // how long each keeps the lock
	slow      int           // nodes that are twenty times as far as the others
}

// rush is how it went.
type rush struct {
	took    time.Duration
	longest time.Duration // that anybody waited
	scripts float64       // for each acquisition, on each node
	alone   time.Duration // how long the lock was left alone for each acquisition
}

func (r rush) String() string {
	return fmt.Sprintf("%v in all, %.2f scripts for each acquisition on each node, left alone for %v before each, longest wait %v",
		r.took.Round(time.Millisecond), r.scripts, r.alone.Round(10*time.Microsecond), r.longest.Round(time.Millisecond))
}

// population returns a world of processes and their coordinators. All have connections, and know how far the nodes are.
func population(t *testing.T, seed uint64, nodes, processes int, path func(client, node int) simulation.Weather) (*simulation.World, []*quorum.Coordinator) {
	t.Helper()
	w := simulation.New(seed, nodes, processes, near)
	var all []*quorum.Coordinator
	for i := range processes {
		client := w.Client(i)
		var ns []*node.Node
		for j := range nodes {
			w.Path(i, j, path(i, j))
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
		quorum.Fix(c, fmt.Sprintf("process-%04d", i), client.Random())
		l, err := c.Acquire(t.Context(), "warm") // no TryAcquire: unlucky first contacts wait for the restart guard
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		all = append(all, c)
	}
	time.Sleep(time.Second)
	return w, all
}

// closeAll closes them, at once.
func closeAll(all []*quorum.Coordinator) {
	var group sync.WaitGroup
	for _, c := range all {
		group.Go(func() { _ = c.Close() })
	}
	group.Wait()
}

func (th throng) run(t *testing.T, seed uint64) (r rush) {
	t.Helper()
	const nodes = 5
	runtime.GC() // there will be none for a while
	inOneThread(func() {
		synctest.Test(t, func(t *testing.T) {
			w, all := population(t, seed, nodes, th.processes, func(_, node int) simulation.Weather {
				if node < th.slow {
					return simulation.Weather{Latency: 20 * near.Latency, Tail: near.Tail, LateBy: 20 * near.LateBy}
				}
				return near
			})
			before, start := w.Counts(), time.Now()
			var mu sync.Mutex
			var group sync.WaitGroup
			holders := 0
			for _, c := range all {
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
						mu.Unlock()
						time.Sleep(th.hold)
						mu.Lock()
						holders--
						mu.Unlock()
						mustRelease(t, l)
					}
				})
			}
			group.Wait()
			r.took = time.Since(start)
			after, sum := w.Counts(), 0
			for what, n := range after.Scripts {
				sum += n - before.Scripts[what]
			}
			acquisitions := th.processes * th.turns
			r.scripts = float64(sum) / float64(nodes*acquisitions)
			r.alone = r.took/time.Duration(acquisitions) - th.hold
			closeAll(all)
		})
	})
	return r
}

// Many processes want one lock all the time. Each acquisition costs a bounded number of scripts, the lock is not left
// alone for long, and nobody starves.
//
// The least that is possible is two scripts (acquire, release), and two round trips alone: a release, and the wake or the
// next acquire. Nobody starves: who has the lock keeps it for a turn (50ms) and the hold that was begun in it, and with
// luck as it is in fair drawings the unluckiest of many waits for some rounds of all.
func TestCrowd(t *testing.T) {
	needsLong(t)
	const turn = 50 * time.Millisecond
	for _, c := range []struct {
		throng
		scripts float64
		alone   time.Duration
		rounds  int // in which everybody else has the lock for a turn
	}{
		{throng{2, 100, 0, 0}, 3, 3 * time.Millisecond, 6},
		// Who comes back for more meets the other one, who hears of every release and takes itself for the only one to come.
		{throng{2, 50, 20 * time.Millisecond, 0}, 5.5, 3 * time.Millisecond, 6},
		{throng{3, 50, time.Millisecond, 0}, 3.5, 3 * time.Millisecond, 6},
		{throng{3, 50, 20 * time.Millisecond, 0}, 5, 3 * time.Millisecond, 6},
		{throng{16, 20, 0, 0}, 4, 4 * time.Millisecond, 6},
		{throng{16, 20, time.Millisecond, 0}, 4, 4 * time.Millisecond, 6},
		{throng{16, 20, 5 * time.Millisecond, 0}, 4, 4 * time.Millisecond, 6},
		{throng{16, 20, 20 * time.Millisecond, 0}, 4, 4 * time.Millisecond, 6},
		{throng{16, 20, 100 * time.Millisecond, 0}, 4, 6 * time.Millisecond, 6},
		{throng{128, 3, 0, 0}, 7, 6 * time.Millisecond, 6},
		{throng{16, 20, 5 * time.Millisecond, 1}, 5, 10 * time.Millisecond, 6},
	} {
		t.Run(fmt.Sprintf("%d processes, holds of %v, %d slow", c.processes, c.hold, c.slow), func(t *testing.T) {
			if !simRepeats { // the race detector is slow: fewer turns, in which the end weighs more, when few are left
				c.turns, c.scripts, c.alone = max(3, c.turns/4), c.scripts+1, 4*c.alone
			}
			r := c.run(t, *crowdSeed)
			t.Log(r)
			if r.scripts > c.scripts {
				t.Errorf("want at most %v scripts", c.scripts)
			}
			if r.alone > c.alone {
				t.Errorf("want it left alone for at most %v", c.alone)
			}
			if limit := time.Duration(c.rounds*c.processes) * (turn + c.hold + c.alone); r.longest > limit {
				t.Errorf("somebody starved: want nobody to wait for more than %v", limit)
			}
		})
	}
}

// Hundreds or thousands of processes wait for one lock, as after a deployment. Each time that it is given back, all of
// them hear of it: without slots to draw from, all of them would try, a thousand scripts on each node and more.
//
// Seen were 3 scripts with 125 processes, 3.5 with 250, 5.5 with 500, 12 to 16 with 1000 and 16 with 2000, and a lock
// that is left alone for 1 to 7ms. It grows because mostSpread and the poll bound how long anybody stays away.
func TestThousandsShareARelease(t *testing.T) {
	needsLong(t)
	const (
		nodes  = 5
		rounds = 25                    // then the others give up
		hold   = 25 * time.Millisecond // so that they go on listening
	)
	most := thousand
	if *crowdSize > 0 {
		most = *crowdSize
	}
	for _, processes := range []int{most / 4, most} {
		var each float64
		var alone time.Duration
		inOneThread(func() {
			// A collector that stops goroutines changes the order in which they run, but without one this takes gigabytes.
			debug.SetGCPercent(100)
			synctest.Test(t, func(t *testing.T) {
				w, all := population(t, *crowdSeed, nodes, processes, func(int, int) simulation.Weather { return near })
				first, err := all[0].Acquire(t.Context(), "stock")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var mu sync.Mutex
				var group sync.WaitGroup
				var took time.Duration
				var scripts map[string]int
				served := 0
				for i, c := range all[1:] {
					group.Go(func() {
						time.Sleep(time.Duration(w.Client(i).Random()() * float64(time.Second/2)))
						l, err := c.Acquire(ctx, "stock")
						if err != nil {
							return // it gave up
						}
						time.Sleep(hold)
						mu.Lock()
						if served++; served == rounds {
							took, scripts = took+w.Now(), w.Counts().Scripts
							cancel()
						}
						mu.Unlock()
						mustRelease(t, l)
					})
				}
				time.Sleep(time.Second)
				before := w.Counts().Scripts
				took = -w.Now()
				mustRelease(t, first)
				group.Wait()
				cancel()
				sum := 0
				for what, n := range scripts {
					sum += n - before[what]
				}
				each, alone = float64(sum)/(nodes*rounds), took/rounds-hold
				closeAll(all)
			})
		})
		t.Logf("%d processes: %.2f scripts for each acquisition on each node, left alone for %v before each", processes, each, alone)
		if each > 20 {
			t.Error("too many scripts")
		}
		if alone > 25*time.Millisecond {
			t.Error("the lock was left alone for too long")
		}
	}
}

// Three replicas of a service start the same cron job at the same time, over links of very different length. Exactly
// one of them runs it: not two, and not none because they took the nodes from each other.
func TestCronJobOfThreeReplicasRunsExactlyOnce(t *testing.T) {
	const nodes, replicas, days = 5, 3, 4
	seeds := uint64(max(simDefault, min(*simRuns, 300)))
	for seed := uint64(1); seed <= seeds; seed++ {
		if seed%32 == 0 {
			runtime.GC()
		}
		inOneThread(func() {
			synctest.Test(t, func(t *testing.T) {
				w, all := population(t, seed, nodes, replicas, func(client, node int) simulation.Weather {
					// From a fifth of a millisecond to 40ms, all magnitudes alike.
					draw := rand.New(rand.NewPCG(seed, uint64(client*nodes+node))).Float64()
					latency := time.Duration(float64(200*time.Microsecond) * math.Pow(200, draw))
					return simulation.Weather{Latency: latency, Tail: 0.05, LateBy: 4 * latency}
				})
				for day := range days {
					var mu sync.Mutex
					var group sync.WaitGroup
					ran := 0
					for i, c := range all {
						group.Go(func() {
							// Their clocks differ by less than a round trip: the worst case.
							time.Sleep(time.Duration(w.Client(i).Random()() * float64(5*time.Millisecond)))
							l, err := c.TryAcquire(t.Context(), fmt.Sprint("cron ", day))
							if err != nil {
								if !errors.Is(err, quorum.ErrNotAcquired) {
									t.Errorf("seed %d: %v", seed, err)
								}
								return
							}
							mu.Lock()
							ran++
							mu.Unlock()
							time.Sleep(10 * time.Second)
							mustRelease(t, l)
						})
					}
					group.Wait()
					if ran != 1 {
						t.Errorf("seed %d, day %d: it ran %d times", seed, day, ran)
					}
				}
				closeAll(all)
			})
		})
		if t.Failed() {
			return
		}
	}
}
