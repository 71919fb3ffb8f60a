package integration_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// The restart guard on real servers, which tell who they are, write snapshots and logs, and follow each other. These
// tests mostly sit out quarantines, and do it side by side.

// found takes servers into use, as a cluster that has been there for a while. A node is not decided about for some node
// timeouts after that, so they are short.
func (m *machines) found() *quorum.Coordinator {
	m.T.Helper()
	m.Timeout = sitOut
	c := m.Client(quorum.Config{})
	m.reaches(c)
	mustRelease(m.T, mustGet(m.T, c, "found"))
	for i := range m.Servers {
		m.eventually("all are settled", func() bool { return m.settled(i) })
	}
	return c
}

// settled tells whether somebody has decided whether a server votes.
func (m *machines) settled(i int) bool { return m.Record(i)["until"] != "" }

// inQuarantine tells whether a server is, by its record.
func (m *machines) inQuarantine(i int) bool {
	m.T.Helper()
	return m.quarantineEnd(i).After(time.Now())
}

// quarantineEnd is when a server's quarantine ends, or has ended, by its record.
func (m *machines) quarantineEnd(i int) time.Time {
	m.T.Helper()
	until, _ := strconv.ParseInt(m.Record(i)["until"], 10, 64)
	return time.UnixMicro(until)
}

// bareMajority gives a client the lock on servers 0 and 1 of three, for one TTL. Then it is cut off, and can heal nothing.
func (m *machines) bareMajority() *quorum.Lease {
	m.T.Helper()
	proxies, urls := m.BehindProxies()
	proxies[2].Cut.Store(true)
	l := mustGet(m.T, m.ClientAt(quorum.Config{}, urls), "stock", quorum.WithLeaseTime(realTTL))
	for _, p := range proxies {
		p.Cut.Store(true)
	}
	if len(m.Hash(0, "stock")) != 1 || len(m.Hash(1, "stock")) != 1 || len(m.Hash(2, "stock")) != 0 {
		m.T.Fatal("no bare majority, and the test shows nothing")
	}
	return l
}

// noSecondHolder tries for the lock while its holder believes in it, over connections that were there before and over new
// ones. Server 1 may have forgotten it, and server 2 has never known.
func (m *machines) noSecondHolder(before *quorum.Coordinator, l *quorum.Lease) {
	m.T.Helper()
	m.eventually("the lease ends", func() bool {
		fresh := m.Client(quorum.Config{})
		stillOne(m.T, before, l)
		stillOne(m.T, fresh, l)
		m.Must(fresh.Close())
		return l.Err() != nil
	})
}

// votesAgain waits until a server votes, without which there is no quorum.
func (m *machines) votesAgain(c *quorum.Coordinator) {
	m.T.Helper()
	m.Kill(0)
	mustRelease(m.T, mustGet(m.T, c, "stock"))
}

func TestRealServerThatForgetsMakesNoSecondQuorum(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for title, forget := range map[string]struct{ before, after func(m *machines) }{
		"restarted empty": {func(*machines) {}, func(m *machines) { m.Restart(1) }},
		"restarted from an old snapshot": {
			func(m *machines) { m.Must(m.Servers[1].Client().Save(m.T.Context()).Err()) },
			func(m *machines) {
				incarnation := m.Record(1)["incarnation"]
				m.Restart(1)
				if got := m.Record(1)["incarnation"]; got == "" || got != incarnation {
					m.T.Fatalf("came back with the record %q of %q, and the test shows nothing", got, incarnation)
				}
			},
		},
		"flushed under open connections": {
			func(*machines) {},
			func(m *machines) { m.Must(m.Servers[1].Client().FlushAll(m.T.Context()).Err()) },
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			m := startMachines(t, 3)
			c := m.found()
			forget.before(m)
			l := m.bareMajority()
			forget.after(m)
			if len(m.Hash(1, "stock")) != 0 {
				t.Fatal("the server remembers, and the test shows nothing")
			}
			m.noSecondHolder(c, l)
			if !contains(m.Log.String(), "may have forgotten", "node="+m.Servers[1].Addr()) {
				t.Error("nobody noticed, and the test shows nothing")
			}
			m.votesAgain(c)
		})
	}
}

// always are the settings with which a server forgets nothing that it has answered.
var always = []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"}

func TestRealServerThatWritesEverythingVotesAtOnceAfterAKill(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3, always...)
	c := m.found()
	l := m.bareMajority()
	killed := time.Now()
	m.Restart(1)
	if m.Hash(1, "stock")[l.Holder()] != "1" {
		t.Fatalf("came back with %v: it has forgotten", m.Hash(1, "stock"))
	}
	m.Kill(0)
	mustRelease(t, mustGet(t, m.Client(quorum.Config{}), "other"))
	if end := m.quarantineEnd(1); end.After(killed) {
		t.Errorf("it was killed at %v and put in quarantine until %v", killed, end)
	}
	m.noSecondHolder(c, l)
	m.Restart(0)

	// With other settings than those that were noted, and with those settings later on, it is not believed.
	for _, settings := range [][]string{{"--appendfsync", "everysec"}, always} {
		m.Must(m.Servers[1].RestartWith(settings...))
		m.eventually("it was checked", func() bool {
			mustRelease(t, mustGet(t, c, "other"))
			return m.inQuarantine(1)
		})
	}
	m.Must(m.Servers[1].Restart())
	mustRelease(t, mustGet(t, c, "other"))
	m.votesAgain(c)
}

// A quorum of addresses is none of servers, however they are called.
func TestRealServerUnderTwoAddressesIsFoundOut(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 2)
	once, twice := quorumtest.StartProxy(t, m.Servers[0]), quorumtest.StartProxy(t, m.Servers[0])
	c := m.ClientAt(quorum.Config{}, []string{m.Servers[0].URL(), once.URL(), m.Servers[1].URL()})
	wantIs(t, c.Ping(t.Context()), quorum.ErrSameServer)
	for range 3 {
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrSameServer)
		_, err = c.Acquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrSameServer)
	}
	m.Clean(realTTL / 2)
	alone := m.ClientAt(quorum.Config{}, []string{once.URL(), m.Servers[0].URL(), twice.URL()})
	// Of the name before, a question may still come out of a proxy whose connection was given up. It is taken back soon, but until
	// then the lock is held by others.
	_, err := alone.TryAcquire(t.Context(), "another")
	wantIs(t, err, quorum.ErrSameServer)
	m.Clean(realTTL / 2) // whatever was granted was taken back
}

// follow makes a server a replica.
func (m *machines) follow(i int, master *redisserver.Server) {
	m.T.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	m.Must(master.Client().ConfigSet(m.T.Context(), "repl-diskless-sync-delay", "0").Err())
	m.Must(m.Servers[i].Client().Do(m.T.Context(), "REPLICAOF", host, port).Err())
	m.eventually("the replica is in step", func() bool {
		info, err := m.Servers[i].Client().Info(m.T.Context(), "replication").Result()
		m.Must(err)
		return strings.Contains(info, "master_link_status:up")
	})
}

func TestRealReplicaDoesNotVoteNorDoesItOncePromoted(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	c := m.found()
	elsewhere := redisserver.Start(t)
	// The master has a record of its own: that of server 2, say, which was made from it.
	m.Must(elsewhere.Client().HSet(t.Context(), script.RecordKey, m.Record(2)).Err())
	m.follow(2, elsewhere)
	for _, c := range []*quorum.Coordinator{c, m.Client(quorum.Config{})} {
		m.reaches(c) // two of three do
		mustRelease(t, mustGet(t, c, "stock"))
	}
	if log := m.Log.String(); !contains(log, "start-up check", "node="+m.Servers[2].Addr(), "a replica, not a master") {
		t.Errorf("logged %s", log)
	}
	m.Kill(1)
	for _, c := range []*quorum.Coordinator{c, m.Client(quorum.Config{})} {
		// What is sent while the server is being looked at is not told that it is a replica, but READONLY.
		m.eventually("a ping tells why", func() bool { return errors.Is(c.Ping(t.Context()), node.ErrReplica) })
		m.eventually("so does an acquire", func() bool {
			_, err := c.TryAcquire(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNoQuorum)
			return errors.Is(err, node.ErrReplica)
		})
	}

	m.Must(m.Servers[2].Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	promoted := time.Now()
	_, err := c.TryAcquire(t.Context(), "stock")
	wantIs(t, err, quorum.ErrQuarantined)
	mustRelease(t, mustGet(t, c, "stock"))
	if took := time.Since(promoted); took < realTTL {
		t.Errorf("it voted %v after it was promoted, want %v", took, realTTL)
	}
}

func TestRealEvictionIsWarnedOf(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	for setting, value := range map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"} {
		m.Must(m.Servers[1].Client().ConfigSet(t.Context(), setting, value).Err())
	}
	m.reaches(m.Client(quorum.Config{}))
	if log := m.Log.String(); strings.Count(log, "throw locks away") != 1 ||
		!contains(log, "node="+m.Servers[1].Addr(), "policy=allkeys-lru") {
		t.Errorf("logged %s", log)
	}
}

// Connections break and scripts are gone, and no server has forgotten anything: nothing is lost, and nobody is put into
// quarantine.
func TestRealBrokenConnectionsAndForgottenScriptsLoseNothing(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	c := m.found()
	kept := mustGet(t, c, "kept")
	var over atomic.Bool
	var turns turns
	var all sync.WaitGroup
	for range 2 {
		c := m.Client(quorum.Config{})
		for range 3 {
			all.Go(func() {
				for !over.Load() && turns.take(t, c) {
				}
			})
		}
	}
	// Until the lease that is kept has been renewed three times in the midst of it.
	m.everywhere("kept")
	start := m.firstExpiry("kept")
	for i := 0; kept.Err() == nil && m.firstExpiry("kept").Sub(start) < realTTL; i++ {
		s := m.Servers[i%len(m.Servers)].Client()
		m.Must(s.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
		m.Must(s.ScriptFlush(t.Context()).Err())
		before := turns.taken.Load()
		m.eventually("the lock changes hands", func() bool { return turns.taken.Load() > before+10 })
	}
	over.Store(true)
	all.Wait()
	if err := kept.Err(); err != nil {
		t.Error(err)
	}
	mustRelease(t, kept)
	for i := range m.Servers {
		if until := m.Record(i)["until"]; until != "0" {
			t.Errorf("server %d was put into quarantine until %s", i, until)
		}
	}
	t.Logf("the lock changed hands %d times", turns.taken.Load())
	m.Clean(realTTL)
}
