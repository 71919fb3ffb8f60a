package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// connections counts the clients that listen, on all servers, whatever they listen to.
func (m *machines) connections() int {
	m.T.Helper()
	sum := 0
	for _, s := range m.Servers {
		list, err := s.Client().Do(m.T.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
		m.Must(err)
		sum += strings.Count(list, "id=")
	}
	return sum
}

// channels are the channels that somebody listens to, on all servers.
func (m *machines) channels() []string {
	m.T.Helper()
	var all []string
	for _, s := range m.Servers {
		some, err := s.Client().PubSubChannels(m.T.Context(), "*").Result()
		m.Must(err)
		all = append(all, some...)
	}
	return all
}

// quiet waits until nobody listens any more.
func (m *machines) quiet() {
	m.T.Helper()
	m.eventually("nobody listens", func() bool { return len(m.channels()) == 0 && m.connections() == 0 })
}

// All servers are killed while many wait, and come back empty, at once or after a while, when no lease is valid any more:
// everybody gets the lock in turn.
func TestRealWaitersOutliveALossOfAllServers(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for _, c := range []struct {
		title                string
		processes, each      int // waiters of each process
		outage, servedWithin time.Duration
	}{
		{"at once", 5, 10, 0, patience},
		{"after five seconds", 2, 50, 5 * time.Second, 10 * time.Second},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			m := startMachines(t, 5)
			holder := mustGet(t, m.Client(quorum.Config{}), "stock")
			var turns turns
			var all sync.WaitGroup
			for range c.processes {
				client := m.Client(quorum.Config{})
				for range c.each {
					all.Go(func() { turns.take(t, client) })
				}
			}
			m.eventually("they wait", func() bool {
				return m.listeners(0, script.Channel("stock")) == int64(c.processes) // one connection each
			})
			m.Kill(0, 1, 2, 3, 4)
			wantDone(t, holder, quorum.ErrLost)
			time.Sleep(c.outage)
			m.Restart(0, 1, 2, 3, 4)
			start := time.Now()
			all.Wait()
			took := time.Since(start)
			t.Logf("%d waiters had it within %v", turns.taken.Load(), took)
			if n := turns.taken.Load(); n != int64(c.processes*c.each) || took > c.servedWithin {
				t.Errorf("%d of %d were served, in %v", n, c.processes*c.each, took)
			}
			m.Clean(time.Second)
			m.quiet()
		})
	}
}

// turns counts who takes a lock in turn.
type turns struct {
	inside int // guarded by the lock alone, so that the race detector sees two holders as well
	taken  atomic.Int64
}

// take has one client take the lock and give it back, and tells whether it could.
func (s *turns) take(t *testing.T, c *quorum.Coordinator) bool {
	t.Helper()
	l, err := c.Acquire(t.Context(), "stock")
	if err != nil {
		t.Error(err)
		return false
	}
	if s.inside++; s.inside != 1 {
		t.Errorf("%d holders at once", s.inside)
	}
	s.inside--
	s.taken.Add(1)
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return true
}

// A waiter whose user may not use publish/subscribe, or some of it, gets the lock by looking now and then.
func TestRealWaiterWithoutPubSubStillGetsTheLock(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for _, denied := range [][]string{
		{"-subscribe"}, {"resetchannels"}, {"-pubsub|numsub"}, {"-@pubsub"},
	} {
		t.Run(strings.Join(denied, " "), func(t *testing.T) {
			t.Parallel()
			m := guarded(t, denied...)
			free, limited := m.Client(quorum.Config{}), m.as("app:"+secret+"@")
			l := mustGet(t, free, "stock", quorum.WithLeaseTime(2*patience)) // never renewed
			got := acquiring(limited, t.Context(), "stock")
			m.poll()
			mustRelease(t, l)
			start := time.Now()
			select {
			case r := <-got:
				m.Must(r.err)
				t.Logf("had it after %v", time.Since(start))
				mustRelease(t, r.lease)
			case <-time.After(patience):
				t.Fatal("hangs")
			}
			m.Clean(time.Second)
		})
	}
}

// Where one node's messages are heard and the others' are not, and somebody who died has left a key on that one, only a look at
// the others shows that the lock has become free.
func TestRealWaiterLooksWhereItHearsNothing(t *testing.T) {
	t.Parallel()
	m := guarded(t, "resetchannels")
	m.Must(m.Servers[2].Client().Do(t.Context(), "ACL", "SETUSER", "app", "allchannels").Err())
	for i, s := range m.Servers {
		holder, lives := "holder:1", 4*patience
		if i == 2 {
			holder, lives = "dead:1", time.Hour
		}
		m.Must(s.Client().HSet(t.Context(), "stock", holder, 1).Err())
		m.Must(s.Client().PExpire(t.Context(), "stock", lives).Err())
	}
	got := acquiring(m.as("app:"+secret+"@"), t.Context(), "stock")
	m.poll()
	for _, s := range m.Servers[:2] {
		m.Must(s.Client().Del(t.Context(), "stock").Err())
	}
	select {
	case r := <-got:
		m.Must(r.err)
		mustRelease(t, r.lease)
	case <-time.After(patience):
		t.Fatal("it looks nowhere else")
	}
}

// poll waits until somebody who waits for a lock has taken a look after a silence. Then it sleeps again, for half a second at
// least. Nobody else may be about meanwhile.
func (m *machines) poll() {
	m.T.Helper()
	looks := func() int { return m.calls()["hrandfield"] }
	seen, at := looks(), time.Now()
	m.eventually("a look", func() bool {
		n := looks()
		if n == seen {
			return false
		}
		silence := time.Since(at)
		seen, at = n, time.Now()
		return silence > realTimeout+50*time.Millisecond // for so long it waits to hear that it listens
	})
}

// A lock that is held costs its renewals, three for each TTL and node, and nothing else; and if anybody waits for it in the
// same process, a look every second.
func TestRealIdleLockCostsItsRenewals(t *testing.T) {
	t.Parallel()
	const span = 4 * realTTL
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	l := mustGet(t, c, "stock")
	var waiters sync.WaitGroup
	for range 10 {
		waiters.Go(func() {
			l, err := c.Acquire(t.Context(), "stock")
			if err != nil {
				t.Error(err)
				return
			}
			mustRelease(t, l)
		})
	}
	m.renewed("stock") // connections are made and records written
	m.eventually("somebody has looked", func() bool { return m.calls()["pubsub|numsub"] > 0 })
	before := m.calls()
	time.Sleep(span)
	after := m.calls()
	renewals := 0
	for what, n := range after {
		switch n -= before[what]; {
		case n == 0 || what == "info" || what == "ping": // our own question; go-redis' client of the test
		case (what == "pubsub|numsub" || what == "hrandfield") && n <= int(span/(500*time.Millisecond)): // looks
		case what == "evalsha":
			renewals = n
		case slices.Contains([]string{"time", "get", "set", "hget", "hgetall", "hlen", "hmget", "hset", "pexpire", "pttl"}, what):
			// What a renewal does inside; from outside nothing of these is sent, as the next check shows.
			if n > 2*renewalsOf(after, before) {
				t.Errorf("%d %s for %d renewals", n, what, renewalsOf(after, before))
			}
		default:
			t.Errorf("%d commands %s", n, what)
		}
	}
	want := int(span/(realTTL/3)) * len(m.Servers)
	t.Logf("%d renewals in %v, %v", renewals, span, after)
	if renewals < want-2*len(m.Servers) || renewals > want+2*len(m.Servers) {
		t.Errorf("%d renewals in %v, want about %d", renewals, span, want)
	}
	if n := m.connections(); n != 0 {
		t.Errorf("%d connections that listen", n)
	}
	mustRelease(t, l)
	waiters.Wait()
	m.Clean(time.Second)
}

func renewalsOf(after, before map[string]int) int { return after["evalsha"] - before["evalsha"] }

// calls counts the commands that all servers have run, by name; those inside scripts as well.
func (m *machines) calls() map[string]int {
	m.T.Helper()
	sum := map[string]int{}
	for _, s := range m.Servers {
		stats, err := s.Client().Info(m.T.Context(), "commandstats").Result()
		m.Must(err)
		for line := range strings.Lines(stats) {
			var n int
			if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":"); ok {
				if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err == nil {
					sum[name] += n
				}
			}
		}
	}
	return sum
}

// After all waits nothing is left on the servers: no channel, and soon no connection that listens.
func TestRealWaitsLeaveNoSubscription(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	clients := []*quorum.Coordinator{m.Client(quorum.Config{}), m.Client(quorum.Config{}), m.Client(quorum.Config{})}
	const names = 4
	name := func(i int) string { return fmt.Sprint("stock ", i%names) }
	var held []*quorum.Lease
	for i := range names {
		held = append(held, mustGet(t, m.Client(quorum.Config{}), name(i)))
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			limit := patience
			if i%7 == 0 { // it gives up
				limit = time.Duration(i) * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			l, err := clients[i%len(clients)].Acquire(ctx, name(i))
			if err == nil {
				mustRelease(t, l)
			} else if i%7 != 0 {
				t.Error(err)
			}
		})
	}
	m.eventually("all names are listened to", func() bool { return len(m.channels()) == names*len(m.Servers) })
	for _, l := range held {
		mustRelease(t, l)
	}
	all.Wait()
	start := time.Now()
	m.quiet()
	t.Logf("quiet after %v", time.Since(start))
	m.Clean(time.Second)

	// Close does not wait for that.
	l := mustGet(t, clients[0], "stock")
	got := acquiring(clients[1], t.Context(), "stock")
	m.eventually("it listens", func() bool { return m.listeners(0, script.Channel("stock")) == 1 })
	m.Must(clients[1].Close())
	wantIs(t, (<-got).err, quorum.ErrClosed)
	m.quiet()
	mustRelease(t, l)
}
