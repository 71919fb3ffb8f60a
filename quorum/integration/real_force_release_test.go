package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// With a node down, two of three revocations would not survive the loss of one more node: no key is deleted. The holder loses its
// lease all the same, and then the lock is free.
func TestRealForceReleaseWithANodeDownStopsTheHolder(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	holder, operator, other := m.Client(quorum.Config{TTL: 4 * realTTL}), m.Client(quorum.Config{}), m.Client(quorum.Config{})
	l := mustGet(t, holder, "stock")
	m.eventually("on all nodes", m.counts("stock", l.Holder(), "1"))
	m.Kill(2)
	held, err := operator.ForceRelease(t.Context(), "stock")
	wantIs(t, err, quorum.ErrNotFreed)
	var qe *quorum.QuorumError
	if !held || !errors.As(err, &qe) || qe.RetryAfter <= 0 || qe.RetryAfter > 4*realTTL+time.Second {
		t.Errorf("held %v, %+v", held, qe)
	}
	if len(m.Hash(0, "stock")) != 1 || len(m.Hash(1, "stock")) != 1 {
		t.Error("a key was deleted")
	}
	wantDone(t, l, quorum.ErrLost)
	mustRelease(t, mustGet(t, other, "stock"))
}

// The old holder renews while the next one has the lock, a node has forgotten everything, and another one does not answer.
func TestRealForceReleaseSurvivesTheLossOfAServer(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	holder, operator, next := m.Client(quorum.Config{TTL: 6 * realTTL}), m.Client(quorum.Config{}), m.Client(quorum.Config{TTL: 6 * realTTL})
	old := mustGet(t, holder, "stock")
	m.eventually("on all nodes", m.counts("stock", old.Holder(), "1"))
	if held, err := operator.ForceRelease(t.Context(), "stock"); err != nil || !held {
		t.Fatal(held, err)
	}
	l := mustGet(t, next, "stock")
	m.eventually("on all nodes", m.counts("stock", l.Holder(), "1"))
	m.Restart(1)
	m.Pause(0)
	err := old.Renew(t.Context())
	wantIs(t, err, quorum.ErrLost)
	wantDone(t, old, quorum.ErrLost)
	if err := l.Renew(t.Context()); err != nil {
		t.Errorf("the next holder: %v", err)
	}
	m.Resume(0)
	mustRelease(t, l)
}
