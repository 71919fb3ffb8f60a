package quorum_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// connections counts the clients that listen, on all servers, whatever they listen to.
func (m *machines) connections() int {
	m.t.Helper()
	sum := 0
	for _, s := range m.servers {
		list, err := s.Client().Do(m.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
		m.must(err)
		sum += strings.Count(list, "id=")
	}
	return sum
}

// channels are the channels that somebody listens to, on all servers.
func (m *machines) channels() []string {
	m.t.Helper()
	var all []string
	for _, s := range m.servers {
		some, err := s.Client().PubSubChannels(m.t.Context(), "*").Result()
		m.must(err)
		all = append(all, some...)
	}
	return all
}

// quiet waits until nobody listens any more.
func (m *machines) quiet() {
	m.t.Helper()
	m.eventually("nobody listens", func() bool { return len(m.channels()) == 0 && m.connections() == 0 })
}

// All servers are killed while a hundred goroutines of two processes wait, and started again, empty, five seconds later:
// everybody gets the lock in turn, within ten seconds.
func TestRealHundredWaitersOutliveAnOutageOfFiveSeconds(t *testing.T) {
	const waiters = 100
	m := startMachines(t, 5)
	holder := mustGet(t, m.client(quorum.Config{}), "stock")
	var inside, served int // guarded by the lock
	var all sync.WaitGroup
	clients := []*quorum.Coordinator{m.client(quorum.Config{}), m.client(quorum.Config{})}
	for i := range waiters {
		all.Go(func() {
			l, err := clients[i%len(clients)].Acquire(t.Context(), "stock")
			if err != nil {
				t.Error(err)
				return
			}
			if inside++; inside != 1 {
				t.Errorf("%d holders at once", inside)
			}
			served++
			inside--
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	m.eventually("they wait", func() bool { return m.listeners(0, script.Channel("stock")) == int64(len(clients)) })
	m.kill(0, 1, 2, 3, 4)
	wantDone(t, holder, quorum.ErrLost)
	time.Sleep(5 * time.Second)
	m.restart(0, 1, 2, 3, 4)
	start := time.Now()
	all.Wait()
	took := time.Since(start)
	t.Logf("%d waiters had it within %v", served, took)
	if served != waiters || took > 10*time.Second {
		t.Errorf("%d of %d were served, in %v", served, waiters, took)
	}
	m.clean(time.Second)
	m.quiet()
}

// A waiter whose user may not use publish/subscribe, or some of it, gets the lock by looking now and then.
func TestRealWaiterWithoutPubSubStillGetsTheLock(t *testing.T) {
	for _, denied := range [][]string{
		{"-subscribe"}, {"resetchannels"}, {"-pubsub|numsub"}, {"-@pubsub"},
	} {
		t.Run(strings.Join(denied, " "), func(t *testing.T) {
			m := guarded(t, denied...)
			free, limited := m.client(quorum.Config{}), m.as("app:"+secret+"@")
			l := mustGet(t, free, "stock")
			got := acquiring(limited, t.Context(), "stock")
			time.Sleep(realTTL) // it waits
			mustRelease(t, l)
			start := time.Now()
			select {
			case r := <-got:
				m.must(r.err)
				t.Logf("had it after %v", time.Since(start))
				mustRelease(t, r.lease)
			case <-time.After(patience):
				t.Fatal("hangs")
			}
			m.clean(time.Second)
		})
	}
}

// A lock that is held costs its renewals, three for each TTL and node, and nothing else; and if anybody waits for it in the
// same process, a look every second.
func TestRealIdleLockCostsItsRenewals(t *testing.T) {
	const span = 4 * realTTL
	m := startMachines(t, 5)
	c := m.client(quorum.Config{})
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
	time.Sleep(realTTL) // connections are made and records written
	before := m.calls()
	time.Sleep(span)
	after := m.calls()
	renewals := 0
	for what, n := range after {
		switch n -= before[what]; {
		case n == 0 || what == "info" || what == "ping": // our own question; go-redis' client of the test
		case what == "pubsub|numsub" && n <= int(span/(500*time.Millisecond)): // looks
		case what == "evalsha":
			renewals = n
		case slices.Contains([]string{"time", "get", "set", "hexists", "hgetall", "hmget", "hset", "pexpire", "pttl"}, what):
			// What a renewal does inside; from outside nothing of these is sent, as the next check shows.
			if n > 2*renewalsOf(after, before) {
				t.Errorf("%d %s for %d renewals", n, what, renewalsOf(after, before))
			}
		default:
			t.Errorf("%d commands %s", n, what)
		}
	}
	want := int(span/(realTTL/3)) * len(m.servers)
	t.Logf("%d renewals in %v, %v", renewals, span, after)
	if renewals < want-2*len(m.servers) || renewals > want+2*len(m.servers) {
		t.Errorf("%d renewals in %v, want about %d", renewals, span, want)
	}
	if n := m.connections(); n != 0 {
		t.Errorf("%d connections that listen", n)
	}
	mustRelease(t, l)
	waiters.Wait()
	m.clean(time.Second)
}

func renewalsOf(after, before map[string]int) int { return after["evalsha"] - before["evalsha"] }

// calls counts the commands that all servers have run, by name; those inside scripts as well.
func (m *machines) calls() map[string]int {
	m.t.Helper()
	sum := map[string]int{}
	for _, s := range m.servers {
		stats, err := s.Client().Info(m.t.Context(), "commandstats").Result()
		m.must(err)
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
	m := startMachines(t, 5)
	clients := []*quorum.Coordinator{m.client(quorum.Config{}), m.client(quorum.Config{}), m.client(quorum.Config{})}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if i%7 == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond) // it gives up
			}
			defer cancel()
			l, err := clients[i%len(clients)].Acquire(ctx, fmt.Sprint("stock ", i%4))
			if err != nil {
				if i%7 != 0 {
					t.Error(err)
				}
				return
			}
			time.Sleep(5 * time.Millisecond)
			mustRelease(t, l)
		})
	}
	all.Wait()
	start := time.Now()
	m.quiet()
	t.Logf("quiet after %v", time.Since(start))
	for _, c := range clients { // of those that nobody had to listen to as well
		m.eventually("no line is left", func() bool { return quorum.LinesOf(c) == 0 })
	}
	m.clean(time.Second)

	// Close does not wait for that.
	l := mustGet(t, clients[0], "stock")
	got := acquiring(clients[1], t.Context(), "stock")
	m.eventually("it listens", func() bool { return m.listeners(0, script.Channel("stock")) == 1 })
	m.must(clients[1].Close())
	wantIs(t, (<-got).err, quorum.ErrClosed)
	m.quiet()
	mustRelease(t, l)
}
