package certmagiclock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// A section is what has one name in this process: at most one caller is inside.
type section struct {
	name string

	// turn has a value while somebody is inside, or about to be. It stays so after a loss until Unlock: CertMagic names no
	// lease when it unlocks, so with two inside the first one's Unlock would end the second one's lease.
	turn chan struct{}

	// Guarded by Storage.mu.
	callers int // inside or waiting; with the last one the section goes
	lease   *quorum.Lease
}

// Lock waits until nobody else has the lock called name, here or elsewhere; ctx bounds the waiting. Its errors are those
// of quorum.Coordinator.Acquire.
func (s *Storage) Lock(ctx context.Context, name string) error {
	sec := s.enter(name)
	select {
	case sec.turn <- struct{}{}:
	case <-ctx.Done():
		s.leave(sec)
		return fmt.Errorf("certmagiclock: %q is locked in this process: %w", name, context.Cause(ctx))
	}
	// CertMagic may be called under a context that carries a lease, and what nests excludes nobody.
	lease, err := s.locks.Acquire(quorum.WithoutLease(ctx), s.cfg.Prefix+name)
	return s.begin(sec, lease, err)
}

// TryLock takes the lock called name if nobody has it, and tells whether it did. It returns an error if that could not be
// found out.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	sec := s.enter(name)
	select {
	case sec.turn <- struct{}{}:
	default:
		s.leave(sec)
		return false, nil
	}
	lease, err := s.locks.TryAcquire(quorum.WithoutLease(ctx), s.cfg.Prefix+name)
	switch err := s.begin(sec, lease, err); {
	case err == nil:
		return true, nil
	case errors.Is(err, quorum.ErrNotAcquired):
		return false, nil
	default:
		return false, err
	}
}

// Unlock gives the lock called name back. A lease that was lost meanwhile is logged, and no error: there is nothing left
// to release. It returns an error if the name is not locked here, or no quorum of nodes confirmed: then what is left of the
// lock runs out with its TTL.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	sec, lease := s.inside(name)
	if sec != nil {
		sec.lease = nil
	}
	s.mu.Unlock()
	if sec == nil {
		return fmt.Errorf("certmagiclock: unlock of %q, which is not locked here", name)
	}
	err := lease.Release(ctx)
	<-sec.turn
	s.leave(sec)
	switch {
	case errors.Is(err, quorum.ErrLost):
		s.cfg.Logger.Error("lease of a certificate lock lost: another server may have done the same at the same time",
			"name", name, "token", lease.Token())
		return nil
	case err == nil || errors.Is(err, quorum.ErrReleased): // the coordinator was closed, which freed it
		return nil
	}
	return fmt.Errorf("certmagiclock: unlock %q: %w", name, err)
}

// RenewLockLease makes sure, before an attempt that may take long, that the lock is still held. CertMagic says for how long
// it would like to have it; since the watchdog renews the lease until Unlock, that does not matter here. A lock that was
// lost is taken again, which waits for as long as others have it, and ctx allows.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	sec, lease := s.inside(name)
	s.mu.Unlock()
	if sec == nil {
		return fmt.Errorf("certmagiclock: renewal of %q, which is not locked here", name)
	}
	err := lease.Renew(ctx)
	if !errors.Is(err, quorum.ErrLost) {
		if err != nil {
			err = fmt.Errorf("certmagiclock: renewal of %q: %w", name, err)
		}
		return err
	}
	s.cfg.Logger.Warn("lease of a certificate lock lost, taking it again", "name", name, "token", lease.Token())
	again, err := s.locks.Acquire(quorum.WithoutLease(ctx), s.cfg.Prefix+name)
	if err != nil {
		return fmt.Errorf("certmagiclock: %q was lost: %w", name, err)
	}
	s.mu.Lock()
	current := sec.lease == lease
	if current {
		sec.lease = again
	}
	s.mu.Unlock()
	if !current { // unlocked meanwhile, as CertMagic does with all its locks before its process ends
		_ = again.Release(ctx)
		return fmt.Errorf("certmagiclock: %q was unlocked during its renewal: %w", name, quorum.ErrReleased)
	}
	return nil
}

// enter counts a caller of a section.
func (s *Storage) enter(name string) *section {
	s.mu.Lock()
	defer s.mu.Unlock()
	sec := s.sections[name]
	if sec == nil {
		sec = &section{name: name, turn: make(chan struct{}, 1)}
		s.sections[name] = sec
	}
	sec.callers++
	return sec
}

// begin notes the lease of a caller whose turn it is, or sends it away.
func (s *Storage) begin(sec *section, lease *quorum.Lease, err error) error {
	if err != nil {
		<-sec.turn
		s.leave(sec)
		return fmt.Errorf("certmagiclock: lock %q: %w", sec.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sec.lease = lease
	return nil
}

// inside is the section called name, with the lease of who is inside; nil if nobody is. The caller has s.mu.
func (s *Storage) inside(name string) (*section, *quorum.Lease) {
	sec := s.sections[name]
	if sec == nil || sec.lease == nil {
		return nil, nil
	}
	return sec, sec.lease
}

// leave lets a caller go.
func (s *Storage) leave(sec *section) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sec.callers--; sec.callers == 0 {
		delete(s.sections, sec.name)
	}
}
