package quorum

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Mutex returns a lock that stands in for a sync.Mutex. Options that make no sense for it (WithWaitTime) and an empty
// name make Lock and TryLock panic, since they have no other way to say so; LockContext returns them as errors.
func (c *Coordinator) Mutex(name string, opts ...Option) *Mutex {
	return &Mutex{c: c, name: name, opts: opts, held: make(chan struct{}, 1)}
}

// A Mutex is a sync.Locker over a lock of the cluster. Like sync.Mutex it has no owner, must not be copied, and does
// not nest: a second Lock waits for the Unlock, whatever context it runs under.
//
// sync.Locker has no way to tell that a lock was lost. [Mutex.Lease] has: watch its Done, or use its Token.
type Mutex struct {
	c    *Coordinator
	name string
	opts []Option

	// held has a value while the mutex is locked in this process. It stays locked after a loss until Unlock, so that
	// two goroutines are never inside, whatever happens to the cluster.
	held chan struct{}

	mu    sync.Mutex
	lease *Lease
}

var _ sync.Locker = (*Mutex)(nil)

// retryPause is how long Lock waits after an error that waiting alone does not cure, before it asks again.
const retryPause = time.Second

// Lock locks the mutex. It keeps trying through outages, and through errors that only an operator can mend, which it
// logs. It panics if the coordinator is closed, or the mutex was made with an empty name or options that are refused.
func (m *Mutex) Lock() {
	for {
		err := m.LockContext(context.Background())
		var votes *QuorumError
		switch {
		case err == nil:
			return
		case errors.Is(err, ErrClosed) || !errors.As(err, &votes):
			panic("redquorum: Lock of mutex " + m.name + ": " + err.Error())
		}
		m.c.log.Error("mutex cannot be locked, trying again", "name", m.name, "error", err)
		pause := time.NewTimer(retryPause)
		select {
		case <-pause.C:
		case <-m.c.closing:
			pause.Stop()
		}
	}
}

// LockContext locks the mutex; ctx bounds the waiting. Its errors are those of [Coordinator.Acquire].
func (m *Mutex) LockContext(ctx context.Context) error {
	if err := m.refused(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return m.c.noAnswer("acquire", m.name, contextErrors(ctx)...)
	}
	select {
	case m.held <- struct{}{}:
	case <-ctx.Done():
		return m.c.noAnswer("acquire", m.name, contextErrors(ctx)...)
	case <-m.c.closing:
		return ErrClosed
	}
	return m.take(m.c.Acquire(WithoutLease(ctx), m.name, m.opts...))
}

// TryLock locks the mutex if nobody has it, and tells whether it did. It is also false when no quorum of nodes
// answered. It panics as Lock does if the name or the options are refused.
func (m *Mutex) TryLock() bool {
	if err := m.refused(); err != nil {
		panic("redquorum: TryLock of mutex " + m.name + ": " + err.Error())
	}
	select {
	case m.held <- struct{}{}:
	default:
		return false
	}
	return m.take(m.c.TryAcquire(context.Background(), m.name, m.opts...)) == nil
}

// refused tells what is wrong with the mutex's name or options.
func (m *Mutex) refused() error {
	t, err := m.c.terms(m.name, m.opts)
	if err == nil && t.limited {
		err = errors.New("redquorum: WithWaitTime on a mutex: bound the waiting by LockContext's ctx")
	}
	return err
}

// take keeps the lease of a mutex that was just locked.
func (m *Mutex) take(lease *Lease, err error) error {
	if err != nil {
		<-m.held
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lease = lease
	return nil
}

// Unlock unlocks the mutex. It panics if it is not locked, as sync.Mutex does. A lease that was lost meanwhile, or a
// release that no quorum confirmed, is logged.
func (m *Mutex) Unlock() {
	err := m.UnlockContext(context.Background())
	switch {
	case errors.Is(err, errUnlocked):
		panic(err.Error())
	case err != nil:
		m.c.log.Warn("unlock", "name", m.name, "error", err)
	}
}

var errUnlocked = errors.New("redquorum: Unlock of unlocked mutex")

// UnlockContext unlocks the mutex in this process, whatever it returns; ctx bounds how long it waits for the nodes. It
// returns ErrLost if the lease was lost meanwhile, and else the errors of [Lease.Release]; an error if the mutex is
// not locked.
func (m *Mutex) UnlockContext(ctx context.Context) error {
	m.mu.Lock()
	lease := m.lease
	m.lease = nil
	m.mu.Unlock()
	if lease == nil {
		return errUnlocked
	}
	defer func() { <-m.held }()
	return lease.Release(ctx)
}

// Lease is the lease while the mutex is locked, so that a loss is visible; nil while it is not.
func (m *Mutex) Lease() *Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease
}
