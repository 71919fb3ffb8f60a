package migrate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// The code that the documents show, before and after, over the same servers.
func TestRealCodeOfTheDocumentsDoesWhatTheySay(t *testing.T) {
	c := start(t)
	locks, rs := c.open(t), openRedsync(c.options())
	own := errors.New("out of stock")
	held := func(context.Context) error {
		if c.have(t, "hash")+c.have(t, "string") < 3 {
			t.Error("sold without the lock")
		}
		return own
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for what, sells := range map[string]func() error{
		"redsync":    func() error { return sellWithRedsync(ctx, rs, held) },
		"Do":         func() error { return sell(ctx, locks, held) },
		"fixed time": func() error { return sellWithinAFixedTime(ctx, locks, held) },
		"nested":     func() error { return nested(ctx, locks, held) },
		"Acquire": func() error {
			return sellStepByStep(ctx, locks, func(ctx context.Context, token int64) error {
				if l := quorum.LeaseFrom(ctx); l == nil || l.Token() != token {
					t.Error("the context does not carry the lease")
				}
				return held(ctx)
			})
		},
	} {
		if err := sells(); !errors.Is(err, own) {
			t.Errorf("%s: %v", what, err)
		}
		c.want(t, "none", len(c))
	}
	for _, fixed := range []time.Duration{0, time.Minute} {
		lease, err := tryLock(ctx, locks, patience, fixed)
		must(t, err)
		_, err = tryLock(ctx, locks, 0, 0)
		wantIs(t, err, quorum.ErrNotAcquired)
		must(t, lease.Release(ctx))
	}
}

// Redisson's forceUnlock deletes the key on a server, and so does any DEL. Whoever holds a lease here takes that for a
// server that forgot, and puts it back.
func TestRealLockThatWasDeletedIsPutBack(t *testing.T) {
	c := start(t)
	locks := c.open(t)
	lease := acquire(t, locks)
	c.want(t, "hash", len(c))
	for _, s := range c {
		must(t, s.Client().Del(t.Context(), name).Err())
	}
	must(t, lease.Renew(t.Context()))
	c.want(t, "hash", len(c))

	if held, err := locks.ForceRelease(t.Context(), name); !held || err != nil {
		t.Fatalf("force-release: %v, %v", held, err)
	}
	wantIs(t, lease.Renew(t.Context()), quorum.ErrLost)
	c.want(t, "none", len(c))
}
