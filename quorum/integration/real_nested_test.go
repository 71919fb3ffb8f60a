package integration_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// HGETALL shows the holder and its true hold count, as Redisson's does.
func TestRealServersShowTheHoldCount(t *testing.T) {
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	outer := mustGet(t, c, "stock")
	shows := func(count int) {
		t.Helper()
		m.eventually("hold count "+strconv.Itoa(count), m.counts("stock", outer.Holder(), strconv.Itoa(count)))
		if got := outer.HoldCount(); got != count {
			t.Errorf("the lease counts %d holds, want %d", got, count)
		}
	}
	holds := []*quorum.Lease{outer}
	shows(1)
	for len(holds) < 4 {
		last := holds[len(holds)-1]
		holds = append(holds, mustAcquire(t, c, last.Context(t.Context()), "stock"))
		shows(len(holds))
	}
	for len(holds) > 1 {
		mustRelease(t, holds[len(holds)-1])
		holds = holds[:len(holds)-1]
		shows(len(holds))
	}
	mustRelease(t, outer)
	m.Clean(time.Second)
}

// A nested hold that gets no quorum leaves the outer one as it was, on every server, and for good.
func TestRealFailedNestedHoldLeavesTheOuterOneWhole(t *testing.T) {
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	outer := mustGet(t, c, "stock")
	m.eventually("on all servers", m.counts("stock", outer.Holder(), "1"))
	m.Must(outer.Renew(t.Context())) // so that there is time for three servers to hang
	m.Pause(0, 1, 2)
	_, err := c.TryAcquire(outer.Context(t.Context()), "stock")
	m.Resume(0, 1, 2)
	wantIs(t, err, quorum.ErrNoQuorum)
	m.eventually("hold count 1 again", m.counts("stock", outer.Holder(), "1"))
	if err := outer.Err(); err != nil || outer.HoldCount() != 1 {
		t.Fatalf("the outer hold: %v, %d holds", err, outer.HoldCount())
	}
	// What was in the servers' sockets has been carried out, or has expired, by now: it is still one.
	m.renewed("stock")
	if !m.counts("stock", outer.Holder(), "1")() {
		t.Error("the hold count changed")
	}
	mustRelease(t, outer)
	m.Clean(time.Second)
}
