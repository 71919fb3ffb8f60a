package docker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redquorum/redquorum/docker"
	"github.com/redquorum/redquorum/quorum"
)

// Short enough to be sat out, long enough for a busy machine.
const ttl = 3 * time.Second

// holder is a coordinator over a cluster, and a lease that it holds.
type holder struct {
	t       *testing.T
	cluster *docker.Cluster
	locks   *quorum.Coordinator
	lease   *quorum.Lease
}

func hold(t *testing.T) *holder {
	t.Helper()
	h := &holder{t: t, cluster: start(t, 5, docker.Options{})}
	var err error
	h.locks, err = quorum.Open(quorum.Config{TTL: ttl, NodeTimeout: 500 * time.Millisecond}, h.cluster.URLs()...)
	ok(t, err)
	t.Cleanup(func() { ok(t, h.locks.Close()) })
	ok(t, h.locks.Ping(t.Context()))
	h.lease = h.acquire(t.Name())
	h.everywhere()
	return h
}

func (h *holder) acquire(name string) *quorum.Lease {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	l, err := h.locks.Acquire(ctx, name)
	ok(h.t, err)
	return l
}

// has counts the nodes that have the lease.
func (h *holder) has() int {
	h.t.Helper()
	s, err := h.locks.Inspect(h.t.Context(), h.lease.Name())
	if err != nil && !errors.Is(err, quorum.ErrNoQuorum) {
		h.t.Fatal(err)
	}
	n := 0
	for _, node := range s.Nodes {
		if node.Holder == h.lease.Holder() {
			n++
		}
	}
	return n
}

// everywhere waits until all nodes have the lease: those that lost it are healed.
func (h *holder) everywhere() {
	h.t.Helper()
	eventually(h.t, "the lease on all nodes", func() bool { h.held(); return h.has() == 5 })
}

// held fails the test if the lease was lost.
func (h *holder) held() {
	h.t.Helper()
	if err := h.lease.Err(); err != nil {
		h.t.Fatalf("the lease was lost: %v", err)
	}
}

// outlives waits until the lease, unless it was renewed since, would have ended.
func (h *holder) outlives(since time.Time) {
	h.t.Helper()
	select {
	case <-h.lease.Done():
		h.held()
	case <-time.After(time.Until(since.Add(ttl))):
	}
}

// lostBy waits for the end of the lease, which has to be announced while no node
// that had it can have let it expire.
func (h *holder) lostBy(deadline time.Time) {
	h.t.Helper()
	select {
	case <-h.lease.Done():
	case <-time.After(time.Until(deadline)):
		h.t.Fatalf("not announced within the TTL: %v left", h.lease.Remaining())
	}
	if err := h.lease.Err(); !errors.Is(err, quorum.ErrLost) {
		h.t.Errorf("the lease ended with %v, want ErrLost", err)
	}
}

func (h *holder) each(step func(int) error, nodes ...int) {
	h.t.Helper()
	for _, i := range nodes {
		ok(h.t, step(i))
	}
}

func TestAcquireAndRelease(t *testing.T) {
	t.Parallel()
	h := hold(t)
	if _, err := h.locks.TryAcquire(t.Context(), h.lease.Name()); !errors.Is(err, quorum.ErrNotAcquired) {
		t.Errorf("a second holder: %v, want ErrNotAcquired", err)
	}
	ok(t, h.lease.Release(t.Context()))
	again := h.acquire(h.lease.Name())
	if again.Token() <= h.lease.Token() {
		t.Errorf("token %d after %d", again.Token(), h.lease.Token())
	}
	ok(t, again.Release(t.Context()))
}

func TestLeaseSurvivesPausedMinority(t *testing.T) {
	t.Parallel()
	h := hold(t)
	h.each(h.cluster.Pause, 0, 3)
	h.outlives(time.Now())
	h.each(h.cluster.Unpause, 0, 3)
	h.everywhere()
	ok(t, h.lease.Release(t.Context()))
}

// Each node in turn loses its memory. The one before has the lease again by then,
// and its vote for others: a TTL is over since it came back.
func TestLeaseSurvivesRollingRestartOfEmptyNodes(t *testing.T) {
	t.Parallel()
	h := hold(t)
	for i := range 5 {
		ok(t, h.cluster.Kill(i))
		ok(t, h.cluster.Restart(i, false))
		back := time.Now()
		h.everywhere()
		h.outlives(back)
	}
	h.held()
	ok(t, h.lease.Release(t.Context()))
	other := h.acquire(h.lease.Name())
	if other.Token() <= h.lease.Token() {
		t.Errorf("token %d after %d: all counters were lost, one by one", other.Token(), h.lease.Token())
	}
	ok(t, other.Release(t.Context()))
}

func TestLeaseSurvivesPartitionOfOneNode(t *testing.T) {
	for name, cut := range map[string]func(*docker.Cluster) func(int) error{
		"both ways": func(c *docker.Cluster) func(int) error { return c.Partition },
		"requests":  func(c *docker.Cluster) func(int) error { return c.CutRequests },
		"replies":   func(c *docker.Cluster) func(int) error { return c.CutReplies },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			ok(t, cut(h.cluster)(2))
			h.outlives(time.Now())
			ok(t, h.cluster.Heal(2))
			h.everywhere()
			ok(t, h.lease.Release(t.Context()))
		})
	}
}

func TestLossIsAnnouncedWithinTheTTL(t *testing.T) {
	for name, c := range map[string]struct {
		cut, mend func(*docker.Cluster) func(int) error
	}{
		"paused": {
			func(c *docker.Cluster) func(int) error { return c.Pause },
			func(c *docker.Cluster) func(int) error { return c.Unpause },
		},
		"partitioned": {
			func(c *docker.Cluster) func(int) error { return c.Partition },
			func(c *docker.Cluster) func(int) error { return c.Heal },
		},
		"replies cut": {
			func(c *docker.Cluster) func(int) error { return c.CutReplies },
			func(c *docker.Cluster) func(int) error { return c.Heal },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			h.each(c.cut(h.cluster), 0, 1, 2)
			// No renewal that began later can have had a quorum.
			h.lostBy(time.Now().Add(ttl))
			h.each(c.mend(h.cluster), 0, 1, 2)
			ok(t, h.acquire(h.lease.Name()).Release(t.Context()))
		})
	}
}
