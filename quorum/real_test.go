package quorum_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// The tests in real_*_test.go show, over real servers, what fake ones cannot: processes that stop and die, kernels that
// go on accepting in their name, memory that is gone after a restart, clocks of several processes. What can be had in
// fake time is tested there.

// Short enough to be sat out, long enough for a busy machine. A test whose servers answer waits for no node timeout, and
// has a longer one: what it shows must not hang on a machine that stands still for a moment.
const (
	realTTL     = 2 * time.Second
	realTimeout = 500 * time.Millisecond
	sitOut      = 250 * time.Millisecond
)

// patience is how long a test waits for what is certain to come. It only tells a failure from a slow machine.
const patience = 20 * time.Second

// machines are some real servers.
type machines struct {
	t *testing.T
	// Indexed as the nodes of every client.
	servers []*redisserver.Server
	// Of every client that is not told another one.
	timeout time.Duration
	log     *journal
}

// startMachines starts n servers, for the length of the test; settings are further arguments of each.
func startMachines(t *testing.T, n int, settings ...string) *machines {
	t.Helper()
	m := &machines{t: t, timeout: realTimeout, log: &journal{}}
	for range n {
		m.servers = append(m.servers, redisserver.Start(t, settings...))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("clients logged:\n%s", m.log)
		}
	})
	return m
}

// client returns a coordinator of its own, as another process would have.
func (m *machines) client(cfg quorum.Config) *quorum.Coordinator {
	m.t.Helper()
	return m.clientAt(cfg, redisserver.URLs(m.servers))
}

// clientAt returns a coordinator that goes by other addresses.
func (m *machines) clientAt(cfg quorum.Config, urls []string) *quorum.Coordinator {
	m.t.Helper()
	if cfg.TTL == 0 {
		cfg.TTL = realTTL
	}
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = m.timeout
	}
	cfg.Logger = slog.New(slog.NewTextHandler(m.log, nil))
	c, err := quorum.Open(cfg, urls...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = c.Close() })
	return c
}

// reaches waits until a client reaches a quorum.
func (m *machines) reaches(c *quorum.Coordinator) {
	m.t.Helper()
	var err error
	if !comes(patience, func() bool { err = c.Ping(m.t.Context()); return err == nil }) {
		m.t.Fatal(err)
	}
}

// pause stops servers (SIGSTOP).
func (m *machines) pause(which ...int) {
	m.t.Helper()
	for _, i := range which {
		m.must(m.servers[i].Pause())
	}
}

// resume continues servers (SIGCONT).
func (m *machines) resume(which ...int) {
	m.t.Helper()
	for _, i := range which {
		m.must(m.servers[i].Resume())
	}
}

// kill ends servers (SIGKILL).
func (m *machines) kill(which ...int) {
	for _, i := range which {
		m.servers[i].Kill()
	}
}

// restart starts servers empty, killing those that run.
func (m *machines) restart(which ...int) {
	m.t.Helper()
	for _, i := range which {
		m.must(m.servers[i].Restart())
	}
}

func (m *machines) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// hash is a lock as a server stores it: its holder and its hold count.
func (m *machines) hash(i int, name string) map[string]string {
	m.t.Helper()
	hash, err := m.servers[i].Client().HGetAll(m.t.Context(), name).Result()
	m.must(err)
	return hash
}

// counts tells whether every server has the lock, for this holder and with this hold count.
func (m *machines) counts(name, holder, count string) func() bool {
	return func() bool {
		m.t.Helper()
		for i := range m.servers {
			if hash := m.hash(i, name); len(hash) != 1 || hash[holder] != count {
				return false
			}
		}
		return true
	}
}

// fence is a server's highest token; 0 if it has none.
func (m *machines) fence(i int, name string) int64 {
	m.t.Helper()
	keys, err := m.servers[i].Client().Exists(m.t.Context(), script.FenceKey(name)).Result()
	m.must(err)
	if keys == 0 {
		return 0
	}
	fence, err := m.servers[i].Client().Get(m.t.Context(), script.FenceKey(name)).Int64()
	m.must(err)
	return fence
}

// left are the keys on all servers that are no fence and no revocation.
func (m *machines) left() []string {
	m.t.Helper()
	var left []string
	for _, s := range m.servers {
		keys, err := s.Client().Keys(m.t.Context(), "*").Result()
		m.must(err)
		for _, key := range keys {
			if !strings.HasPrefix(key, "redquorum_fence:") && !strings.HasPrefix(key, "redquorum_revoked:") &&
				key != script.RecordKey {
				left = append(left, s.Addr()+" "+key)
			}
		}
	}
	return left
}

// clean waits until nothing is left on any server.
func (m *machines) clean(within time.Duration) {
	m.t.Helper()
	var left []string
	if !comes(within, func() bool { left = m.left(); return len(left) == 0 }) {
		m.t.Fatalf("not clean within %v: %d keys: %.10q", within, len(left), left)
	}
}

// eventually waits until the condition holds.
func (m *machines) eventually(what string, condition func() bool) {
	m.t.Helper()
	if !comes(patience, condition) {
		m.t.Fatalf("not within %v: %s", patience, what)
	}
}

// comes waits until the condition holds, and tells whether it does. It is asked for once more when the time is over:
// what counts is when it was asked for, and not when the answer came.
func comes(within time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(within); ; time.Sleep(2 * time.Millisecond) {
		late := time.Now().After(deadline)
		if condition() {
			return true
		}
		if late {
			return false
		}
	}
}

// wantDone waits for the end of a lease, and checks what the lease then says.
func wantDone(t *testing.T, l *quorum.Lease, why error) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(patience):
		t.Fatalf("the lease has not ended within %v", patience)
	}
	wantIs(t, l.Err(), why)
	if l.Remaining() != 0 || l.HoldCount() != 0 {
		t.Errorf("after its end: %v left, %d holds", l.Remaining(), l.HoldCount())
	}
}

// mustGet acquires, however long it takes: a machine that stands still for a moment costs an attempt, and no test.
func mustGet(t *testing.T, c *quorum.Coordinator, name string, opts ...quorum.Option) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := c.Acquire(ctx, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
