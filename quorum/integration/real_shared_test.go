package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// Everything at once, from many goroutines, on handles that they share and go on using after their end, while servers stop,
// and while the coordinator is closed: for the race detector, and nothing is left.
func TestRealEverythingAtOnceOnSharedHandles(t *testing.T) {
	t.Parallel()
	const goroutines, calls, names = 40, 150, 3
	m := startMachines(t, 3)
	m.found()
	c := m.Client(quorum.Config{NodeTimeout: 100 * time.Millisecond})
	var handles [names]atomic.Pointer[quorum.Lease]
	mutex := c.Mutex("mutex")
	var done atomic.Int32
	halfway := make(chan struct{})
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for range calls {
				if done.Add(1) == goroutines*calls/2 {
					close(halfway)
				}
				i := rand.IntN(names)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(300))*time.Millisecond)
				anything(ctx, c, fmt.Sprint("shared ", i), &handles[i], mutex, g == 0)
				cancel()
			}
		})
	}
	over := make(chan struct{})
	var trouble sync.WaitGroup
	trouble.Go(func() {
		for i := 0; ; i = (i + 1) % len(m.Servers) {
			m.Pause(i)
			select {
			case <-over:
				m.Resume(i)
				return
			case <-time.After(time.Duration(rand.IntN(300)) * time.Millisecond):
			}
			m.Resume(i)
		}
	})
	<-halfway
	m.Must(c.Close())
	all.Wait()
	close(over)
	trouble.Wait()
	for i := range names {
		m.eventually("nothing is left", func() bool { return !m.held(fmt.Sprint("shared ", i)) })
	}
	m.quiet()
}

// held tells whether any server has a lock.
func (m *machines) held(name string) bool {
	for i := range m.Servers {
		if len(m.Hash(i, name)) > 0 {
			return true
		}
	}
	return false
}

// anything makes one call, drawn at random, on a coordinator, a lock of it, and a handle of that which others use as well.
func anything(ctx context.Context, c *quorum.Coordinator, name string, handle *atomic.Pointer[quorum.Lease], mutex *quorum.Mutex, force bool) {
	l := handle.Load()
	switch k := rand.IntN(12); {
	case k <= 1:
		if l, err := c.Acquire(ctx, name); err == nil {
			handle.Store(l)
		}
	case k == 2:
		if l, err := c.TryAcquire(ctx, name, quorum.WithLeaseTime(300*time.Millisecond)); err == nil {
			handle.Store(l)
		}
	case k == 3 && force:
		_, _ = c.ForceRelease(ctx, name)
	case k == 4:
		_, _ = c.Inspect(ctx, name)
	case k == 5:
		if mutex.LockContext(ctx) == nil {
			_ = mutex.UnlockContext(ctx)
		}
	case l == nil:
	case k == 6:
		_ = l.Release(ctx)
	case k == 7:
		_ = l.Renew(ctx)
	case k == 8:
		if nested, err := c.Acquire(l.Context(ctx), name); err == nil {
			_ = nested.HoldCount()
			_ = nested.Release(ctx)
		}
	case k == 9:
		_, _ = l.Votes(), l.Remaining()
	case k == 10:
		<-l.Context(ctx).Done()
	case k == 11:
		_ = c.Do(l.Context(ctx), name, func(context.Context) error { return nil })
	}
}
