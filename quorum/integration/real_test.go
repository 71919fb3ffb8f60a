package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
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

// patience is how long a test waits for what is certain to come.
const patience = quorumtest.Patience

// machines are some real servers, and what these tests ask of them.
type machines struct{ *quorumtest.Machines }

// startMachines starts n servers, for the length of the test; settings are further arguments of each.
func startMachines(t *testing.T, n int, settings ...string) *machines {
	t.Helper()
	m := quorumtest.Start(t, n, settings...)
	m.TTL, m.Timeout = realTTL, realTimeout
	return &machines{m}
}

// on are servers that run already, in a test of their own.
func on(t *testing.T, log *quorumtest.Journal, servers ...*redisserver.Server) *machines {
	return &machines{&quorumtest.Machines{T: t, Servers: servers, TTL: realTTL, Timeout: realTimeout, Log: log}}
}

// reaches waits until a client reaches a quorum.
func (m *machines) reaches(c *quorum.Coordinator) {
	m.T.Helper()
	var err error
	if !quorumtest.Comes(patience, func() bool { err = c.Ping(m.T.Context()); return err == nil }) {
		m.T.Fatal(err)
	}
}

// counts tells whether every server has the lock, for this holder and with this hold count.
func (m *machines) counts(name, holder, count string) func() bool {
	return func() bool {
		m.T.Helper()
		for i := range m.Servers {
			if hash := m.Hash(i, name); len(hash) != 1 || hash[holder] != count {
				return false
			}
		}
		return true
	}
}

// fence is a server's highest token; 0 if it has none.
func (m *machines) fence(i int, name string) int64 {
	m.T.Helper()
	keys, err := m.Servers[i].Client().Exists(m.T.Context(), script.FenceKey(name)).Result()
	m.Must(err)
	if keys == 0 {
		return 0
	}
	fence, err := m.Servers[i].Client().Get(m.T.Context(), script.FenceKey(name)).Int64()
	m.Must(err)
	return fence
}

// eventually waits until the condition holds.
func (m *machines) eventually(what string, condition func() bool) {
	m.T.Helper()
	if !quorumtest.Comes(patience, condition) {
		m.T.Fatalf("not within %v: %s", patience, what)
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
