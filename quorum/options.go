package quorum

import (
	"errors"
	"fmt"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// An Option changes one acquire.
type Option func(*terms) error

// terms are what an acquire asks for.
type terms struct {
	ttl     time.Duration
	watched bool // the watchdog renews it

	limited bool // wait no longer than wait
	wait    time.Duration
}

// WithLeaseTime makes the lease one of d that is never renewed by the watchdog: it ends d (less drift) after its grant
// or its last Renew. Redisson's lease time. d is cut to whole milliseconds; under 1 ms, or too short to outlast its own
// drift, it is refused.
//
// A nested hold shares the lease it nests in, and its TTL: there the option has no effect.
func WithLeaseTime(d time.Duration) Option {
	return func(t *terms) error {
		if d < 0 {
			return fmt.Errorf("redquorum: lease time %v is negative", d)
		}
		if d < time.Millisecond {
			return fmt.Errorf("redquorum: lease time %v is under 1ms, the finest that Redis knows", d)
		}
		t.ttl, t.watched = d.Truncate(time.Millisecond), false
		return nil
	}
}

// WithWaitTime makes Acquire give up waiting after d, with what it last saw (ErrNotAcquired or ErrNoQuorum). 0 means
// one attempt. Redisson's wait time. TryAcquire, which does not wait, refuses it.
func WithWaitTime(d time.Duration) Option {
	return func(t *terms) error {
		if d < 0 {
			return fmt.Errorf("redquorum: wait time %v is negative: want 0 for one attempt, or more", d)
		}
		t.wait, t.limited = d, true
		return nil
	}
}

// terms resolves the options of one acquire.
func (c *Coordinator) terms(name string, options []Option) (terms, error) {
	t := terms{ttl: c.cfg.TTL, watched: true}
	if err := c.validateName(name); err != nil {
		return t, err
	}
	for i, option := range options {
		if option == nil {
			return t, fmt.Errorf("redquorum: option %d is nil", i)
		}
		if err := option(&t); err != nil {
			return t, err
		}
	}
	if drift := c.drift(t.ttl); t.ttl <= drift {
		return t, fmt.Errorf("redquorum: lease time %v does not outlast its own drift of %v", t.ttl, drift)
	}
	return t, nil
}

// drift is by how much less than its TTL a lease may be believed.
func (c *Coordinator) drift(ttl time.Duration) time.Duration {
	return clock.Drift(ttl, c.cfg.DriftFactor, c.cfg.Clock.Uncertainty())
}

var errWaitOnTry = errors.New("redquorum: WithWaitTime on TryAcquire, which does not wait: use Acquire")
