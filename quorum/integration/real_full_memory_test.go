package integration_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// A server whose memory is full keeps what it has: held leases live on, also with nested holds and over new connections, and
// are released. New locks are refused, and the error says why.
func TestRealFullMemoryEndsNoLease(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	c, other := m.Client(quorum.Config{}), m.Client(quorum.Config{})
	mustRelease(t, mustGet(t, other, "warm"))
	l := mustGet(t, c, "stock")
	m.eventually("on all nodes", m.counts("stock", l.Holder(), "1"))
	for _, s := range m.Servers {
		m.Must(s.Client().ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
		m.Must(s.Client().ConfigSet(t.Context(), "maxmemory", "1").Err())
	}
	_, err := other.TryAcquire(t.Context(), "another")
	wantIs(t, err, quorum.ErrNoQuorum)
	if !strings.Contains(err.Error(), "OOM") {
		t.Errorf("%v does not say why", err)
	}
	inner, err := c.TryAcquire(l.Context(t.Context()), "stock")
	if err != nil {
		t.Fatalf("a nested hold: %v", err)
	}
	m.eventually("two holds on all nodes", m.counts("stock", l.Holder(), "2"))
	mustRelease(t, inner)
	m.eventually("one hold on all nodes", m.counts("stock", l.Holder(), "1"))
	for _, s := range m.Servers { // the next renewal comes over new connections
		m.Must(s.Client().ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	}
	for end := time.Now().Add(2 * realTTL); time.Now().Before(end); time.Sleep(realTTL / 20) {
		if l.Err() != nil {
			t.Fatalf("the lease ended: %v", l.Err())
		}
		_, err := other.TryAcquire(t.Context(), "stock")
		if err == nil {
			t.Fatal("a second holder")
		}
		if !errors.Is(err, quorum.ErrNotAcquired) && !errors.Is(err, quorum.ErrNoQuorum) {
			t.Fatal(err)
		}
	}
	mustRelease(t, l)
	m.Clean(patience)
}
