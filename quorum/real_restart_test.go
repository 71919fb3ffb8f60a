package quorum_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// All servers are restarted without their memory, one after another, each as soon as the one before is healed: a lease
// lives on, and nobody else gets the lock at any time.
func TestRealLeaseSurvivesARollingRestart(t *testing.T) {
	m := startMachines(t, 5)
	c, rival := m.client(quorum.Config{}), m.client(quorum.Config{})
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
	for i := range m.servers {
		m.restart(i)
		m.eventually("healed", func() bool { return m.hash(i, "stock")[l.Holder()] == "1" })
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
	m.clean(time.Second)
}

// All servers die while many wait, and come back empty when no lease can be valid any more: everybody gets the lock in
// turn.
func TestRealWaitersOutliveALossOfAllServers(t *testing.T) {
	m := startMachines(t, 5)
	holder := mustGet(t, m.client(quorum.Config{}), "stock")
	var inside, served int // guarded by the lock
	var all sync.WaitGroup
	for range 5 {
		c := m.client(quorum.Config{})
		for range 10 {
			all.Go(func() {
				l, err := c.Acquire(t.Context(), "stock")
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
	}
	m.eventually("they wait", func() bool {
		return m.listeners(0, script.Channel("stock")) == 5 // one connection each
	})
	m.kill(0, 1, 2, 3, 4)
	wantDone(t, holder, quorum.ErrLost)
	time.Sleep(realTTL) // what the servers forgot has expired, and with it the guarantee holds again
	m.restart(0, 1, 2, 3, 4)
	all.Wait()
	if served != 50 {
		t.Errorf("%d of 50 were served", served)
	}
	m.clean(time.Second)
}
