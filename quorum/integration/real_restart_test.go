package integration_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// All servers are restarted without their memory, one after another, each as soon as the one before is healed: a lease
// lives on, and nobody else gets the lock at any time.
func TestRealLeaseSurvivesARollingRestart(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	c, rival := m.Client(quorum.Config{}), m.Client(quorum.Config{})
	l := mustGet(t, c, "stock")
	m.eventually("on all servers", m.counts("stock", l.Holder(), "1"))

	over := make(chan struct{})
	var rivals sync.WaitGroup
	rivals.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if second, err := rival.TryAcquire(t.Context(), "stock"); err == nil {
				t.Error("a rival got the lock")
				_ = second.Release(context.Background())
			}
		}
	})
	for i := range m.Servers {
		m.Restart(i)
		m.eventually("healed", func() bool { return m.Hash(i, "stock")[l.Holder()] == "1" })
		if fence := m.fence(i, "stock"); fence < l.Token() {
			t.Errorf("server %d came back with the fence %d, want at least %d", i, fence, l.Token())
		}
	}
	close(over)
	rivals.Wait()
	if err := l.Err(); err != nil {
		t.Errorf("the lease did not survive: %v", err)
	}
	mustRelease(t, l)
	m.Clean(time.Second)
}
