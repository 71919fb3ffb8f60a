package integration_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// A group in place of a server, with replicas and sentinels that are real: what is asked here is what they do.

// succession is how much longer than the longest TTL a promoted replica is in quarantine, see node/sentinel.go.
const succession = 3 * time.Second

// startGroup makes node 1 of three a group. The master's place among the servers is its own, so that what is asked of node 1
// is asked of it, until promote.
func startGroup(t *testing.T, at func(*redisserver.Server) string, args ...string) (*machines, *redisserver.Group) {
	t.Helper()
	m := startMachines(t, 2)
	g := redisserver.StartGroup(t, redisserver.GroupOptions{Replicas: 2, Sentinels: 3, At: at, Args: args})
	m.Servers = []*redisserver.Server{m.Servers[0], g.Servers[0], m.Servers[1]}
	return m, g
}

// urls are the addresses of the nodes.
func (m *machines) urls(g *redisserver.Group) []string {
	return []string{m.Servers[0].URL(), g.URL(), m.Servers[2].URL()}
}

// foundGroup takes the nodes into use, as found does.
func (m *machines) foundGroup(g *redisserver.Group) *quorum.Coordinator {
	m.T.Helper()
	c := m.ClientAt(quorum.Config{}, m.urls(g))
	m.reaches(c)
	mustRelease(m.T, mustGet(m.T, c, "found"))
	for i := range m.Servers {
		m.eventually("all are settled", func() bool { return m.settled(i) })
	}
	for _, s := range g.Servers[1:] {
		m.eventually("replicas have the record", func() bool {
			return s.Client().HGet(m.T.Context(), script.RecordKey, "until").Val() != ""
		})
	}
	return c
}

// promote waits until the sentinels have another master, which is what is asked of node 1 from then on.
func (m *machines) promote(g *redisserver.Group) {
	m.T.Helper()
	m.Servers[1] = g.Promoted(m.Servers[1])
}

// The master of a node dies. A lease goes on, is renewed at the new master, and nobody else gets the lock; who waits is woken
// by the new master; the old one comes back as a replica, and is not taken for the node.
func TestRealLeaseLivesThroughAFailover(t *testing.T) {
	t.Parallel()
	m, g := startGroup(t, nil)
	c := m.foundGroup(g)
	l := mustGet(t, c, "stock")
	m.eventually("on all nodes", m.counts("stock", l.Holder(), "1"))
	incarnation := m.Record(1)["incarnation"]

	over := make(chan struct{})
	var rivals sync.WaitGroup
	for range 2 {
		rival := m.ClientAt(quorum.Config{}, m.urls(g))
		rivals.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
				if second, err := rival.TryAcquire(t.Context(), "stock"); err == nil {
					t.Error("a rival got the lock")
					_ = second.Release(context.Background())
				}
			}
		})
	}

	old := m.Servers[1]
	old.Kill()
	m.promote(g)
	m.eventually("the new master is in quarantine", func() bool { return m.inQuarantine(1) })
	if got := m.Record(1)["incarnation"]; got == incarnation {
		t.Errorf("the new master goes on as %s", got)
	}
	end := m.quarantineEnd(1)
	m.eventually("the lease is renewed at the new master", func() bool {
		left := m.Servers[1].Client().PTTL(t.Context(), "stock").Val()
		return m.Hash(1, "stock")[l.Holder()] == "1" && left > realTTL/2 && time.Now().After(end)
	})
	// From here on it takes the new master's votes.
	m.Kill(2)
	third := m.Servers[2].URL()
	m.Servers = m.Servers[:2]
	for before := l.Remaining(); ; {
		now := l.Remaining()
		if l.Err() != nil {
			t.Fatalf("the lease did not live through the failover: %v", l.Err())
		}
		if now > before {
			break
		}
		before = now
	}
	close(over)
	rivals.Wait()

	waiter := m.ClientAt(quorum.Config{}, []string{m.Servers[0].URL(), g.URL(), third})
	got := make(chan *quorum.Lease, 1)
	go func() {
		next, err := waiter.Acquire(t.Context(), "stock")
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	channel := script.Channel("stock")
	m.eventually("the waiter listens to the new master", func() bool {
		return m.Servers[1].Client().PubSubNumSub(t.Context(), channel).Val()[channel] == 1
	})
	mustRelease(t, l)
	next := <-got
	if next == nil || next.Token() <= l.Token() {
		t.Fatalf("%+v after token %d", next, l.Token())
	}

	m.Must(old.Restart())
	g.Await("the old master follows the new one", func() bool { return g.Follows(old) })
	mustRelease(t, next)
	mustRelease(t, mustGet(t, c, "other"))
	if clients := old.Client().ClientList(t.Context()).Val(); strings.Contains(clients, "cmd=evalsha") {
		t.Errorf("somebody sends scripts to the old master: %s", clients)
	}
}

// A failover loses a lock: the replica that is promoted has never got it. The holder, who is cut off from the other nodes,
// believes in its lease; nobody else gets the lock until that is over, over old connections or new ones.
//
// How long sentinels take is theirs, and one that finds that it stood still does nothing for thirty seconds. A lease that
// came after the failover, or was over before somebody asked for its lock, shows nothing, so a longer one is tried, and at
// last the test fails.
func TestRealFailoverThatForgetsMakesNoSecondQuorum(t *testing.T) {
	redisserver.Require(t)
	t.Parallel()
	for _, lease := range []time.Duration{8 * time.Second, 20 * time.Second, time.Minute} {
		outlived := false
		if ok := t.Run(lease.String(), func(t *testing.T) { outlived = outlivesAFailoverThatForgets(t, lease) }); !ok || outlived {
			return
		}
	}
	t.Fatal("no lease lived through its failover, and the test shows nothing")
}

// outlivesAFailoverThatForgets has a lease live through the failover. It returns false if that did not come about.
func outlivesAFailoverThatForgets(t *testing.T, lease time.Duration) bool {
	var way *quorumtest.Proxy
	m, g := startGroup(t, func(master *redisserver.Server) string {
		way = quorumtest.StartProxy(t, master)
		return way.Addr()
	})
	before := m.foundGroup(g)

	// The holder's way to the master goes past the proxy, on which replicas and sentinels depend.
	other := quorumtest.StartProxy(t, m.Servers[2])
	holder := m.pastProxy(g, way, m.Servers[0].URL(), other.URL())
	mustRelease(t, mustGet(t, holder, "warm"))

	other.Cut.Store(true)
	way.Cut.Store(true) // the master takes writes for another ten seconds
	l := mustGet(t, holder, "stock", quorum.WithLeaseTime(lease))
	if m.Hash(1, "stock")[l.Holder()] != "1" || m.Hash(0, "stock")[l.Holder()] != "1" {
		t.Log("no bare majority: it took so long that the master was replaced before")
		return false
	}
	m.promote(g)
	if len(m.Hash(1, "stock")) != 0 || len(m.Hash(2, "stock")) != 0 {
		t.Fatal("the new master remembers, and the test shows nothing")
	}

	// Over old connections, and over new ones.
	refused := 0
	if !quorumtest.Comes(lease+patience, func() bool {
		fresh := m.ClientAt(quorum.Config{}, m.urls(g))
		for _, c := range []*quorum.Coordinator{before, fresh} {
			second, err := c.TryAcquire(t.Context(), "stock")
			alive := l.Err() == nil
			switch {
			case err == nil && alive:
				t.Error("a second holder")
				fallthrough
			case err == nil:
				mustRelease(t, second)
			case alive:
				refused++
			}
		}
		m.Must(fresh.Close())
		return l.Err() != nil
	}) {
		t.Fatalf("a lease of %v has not ended within %v", lease, lease+patience)
	}
	if refused == 0 {
		t.Logf("nobody asked for the lock before the lease, of %v, was over", lease)
		return false
	}
	since, err := strconv.ParseInt(m.Record(1)["since"], 10, 64)
	m.Must(err)
	if took := m.quarantineEnd(1).Sub(time.UnixMicro(since)); took != lease+succession {
		t.Errorf("the new master is in quarantine for %v, want %v", took, lease+succession)
	}
	m.Kill(0)
	if !quorumtest.Comes(lease+patience, func() bool { return !m.inQuarantine(1) }) {
		t.Fatalf("the quarantine goes on until %v", m.quarantineEnd(1))
	}
	mustRelease(t, mustGet(t, before, "stock")) // and then it votes
	return true
}

// pastProxy returns a client whose way to the first master goes past the proxy behind which everybody else knows it. The first
// and third node are at these addresses.
func (m *machines) pastProxy(g *redisserver.Group, way *quorumtest.Proxy, first, third string) *quorum.Coordinator {
	m.T.Helper()
	master := m.Servers[1].Addr()
	opts := &redis.FailoverOptions{
		MasterName: redisserver.GroupName,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == way.Addr() {
				addr = master
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	for _, s := range g.Sentinels {
		opts.SentinelAddrs = append(opts.SentinelAddrs, s.Addr())
	}
	grouped, err := node.NewFailover(opts)
	m.Must(err)
	nodes := []*node.Node{nil, grouped, nil}
	nodes[0], err = node.Open(first)
	m.Must(err)
	nodes[2], err = node.Open(third)
	m.Must(err)
	c, err := quorum.New(nodes, quorum.Config{
		TTL: realTTL, NodeTimeout: realTimeout, Logger: slog.New(slog.NewTextHandler(m.Log, nil)),
	})
	m.Must(err)
	m.T.Cleanup(func() { _ = c.Close() })
	return c
}

// A master is replaced and does not know it: cut off from its replicas and the sentinels it goes on taking writes, and a
// client reaches it. That one must not count its vote, once the new master may vote for others.
func TestRealMasterThatWasReplacedAndDoesNotKnowHasNoVote(t *testing.T) {
	t.Parallel()
	var way *quorumtest.Proxy
	// It is long before the old master misses its replicas: not they, nor Redis, are to save us.
	m, g := startGroup(t, func(master *redisserver.Server) string {
		way = quorumtest.StartProxy(t, master)
		return way.Addr()
	}, "--min-replicas-max-lag", "1000")
	m.foundGroup(g)
	notFirst, notThird := quorumtest.StartProxy(t, m.Servers[0]), quorumtest.StartProxy(t, m.Servers[2])
	there := m.ClientAt(quorum.Config{}, []string{notFirst.URL(), g.URL(), m.Servers[2].URL()})
	here := m.pastProxy(g, way, m.Servers[0].URL(), notThird.URL())
	for _, c := range []*quorum.Coordinator{there, here} {
		mustRelease(t, mustGet(t, c, "warm"))
	}

	old := m.Servers[1]
	way.Hold() // and does not even let it see that connections end, as a network does not
	m.promote(g)
	notFirst.Cut.Store(true)
	notThird.Cut.Store(true)
	l := mustGet(t, there, "stock") // the new master and the third node
	if err := old.Client().Set(t.Context(), "written", "1", 0).Err(); err != nil {
		t.Fatalf("the old master knows, and the test shows nothing: %v", err)
	}
	if len(m.Hash(0, "stock")) != 0 {
		t.Fatal("the first node has the lock, and the test shows nothing")
	}
	for end := time.Now().Add(2 * realTTL); time.Now().Before(end); {
		stillOne(t, here, l)
	}
	if n := old.Client().Exists(t.Context(), "stock").Val(); n != 0 {
		t.Error("the old master was asked")
	}
	mustRelease(t, l)
	mustRelease(t, mustGet(t, here, "stock")) // the first node and the new master
}

// A master that no replica follows any more takes no lock, nor does one that need not care. The error says what to set.
func TestRealMasterBehindSentinelNeedsAReplicaThatKeepsUp(t *testing.T) {
	t.Parallel()
	m, g := startGroup(t, nil)
	c := m.foundGroup(g)
	m.Kill(2)
	mustRelease(t, mustGet(t, c, "stock"))

	m.Must(m.Servers[1].Client().ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	fresh := m.ClientAt(quorum.Config{}, m.urls(g))
	err := fresh.Ping(t.Context())
	wantIs(t, err, node.ErrUnguarded)
	if !contains(err.Error(), "min-replicas-to-write") {
		t.Errorf("%v does not name the rule", err)
	}
	_, err = fresh.TryAcquire(t.Context(), "stock")
	wantIs(t, err, quorum.ErrNoQuorum)

	m.Must(m.Servers[1].Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	for _, s := range g.Servers[1:] {
		s.Kill()
	}
	m.eventually("it refuses", func() bool {
		_, err = c.TryAcquire(t.Context(), "stock")
		return errors.Is(err, quorum.ErrNoQuorum) && contains(err.Error(), "NOREPLICAS")
	})
	m.Must(g.Servers[1].Restart())
	mustRelease(t, mustGet(t, c, "stock"))
}

func TestNodeBehindSentinelNeedsTheRestartGuard(t *testing.T) {
	_, err := quorum.Open(quorum.Config{NoRestartGuard: true}, "redis+sentinel://one,two,three/mymaster")
	if err == nil || !contains(err.Error(), "NoRestartGuard", "mymaster@one:26379") {
		t.Errorf("got %v", err)
	}
	_, err = quorum.Open(quorum.Config{}, "redis+sentinel://one,two/mymaster", "redis+sentinel://two:26379,ONE/mymaster")
	if err == nil || !contains(err.Error(), "same address") {
		t.Errorf("got %v", err)
	}
}
