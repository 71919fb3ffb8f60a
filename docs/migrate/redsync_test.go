package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/redquorum/redquorum/quorum"
)

// redsync is the other party, with its locks on the same servers. They expire long after the test.
func (c cluster) redsync(options ...redsync.Option) *redsync.Mutex {
	var pools []redsyncredis.Pool
	for _, s := range c {
		pools = append(pools, goredis.NewPool(s.Client()))
	}
	options = append([]redsync.Option{redsync.WithExpiry(time.Minute)}, options...)
	return redsync.New(pools...).NewMutex(name, options...)
}

func TestRealRedsyncAndWeExcludeEachOther(t *testing.T) {
	c := start(t)
	locks := c.open(t)

	lease := acquire(t, locks)
	c.want(t, "hash", len(c))
	theirs := c.redsync()
	var taken *redsync.ErrTaken
	if err := theirs.TryLock(); !errors.As(err, &taken) || len(taken.Nodes) != len(c) {
		t.Fatalf("redsync, while we have the lock: %v", err)
	}
	for what, change := range map[string]func(*redsync.Mutex) (bool, error){
		"unlock": (*redsync.Mutex).Unlock,
		"extend": (*redsync.Mutex).Extend,
	} {
		for _, option := range []redsync.Option{redsync.WithValue("of theirs"), redsync.WithSetNXOnExtend()} {
			if ok, err := change(c.redsync(option)); ok || err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("redsync's %s of our lock: %v, %v", what, ok, err)
			}
		}
	}
	must(t, lease.Renew(t.Context()))
	c.want(t, "hash", len(c))
	must(t, lease.Release(t.Context()))
	c.want(t, "none", len(c))

	must(t, theirs.Lock())
	_, err := locks.TryAcquire(t.Context(), name)
	wantIs(t, err, quorum.ErrNotAcquired)
	var detail *quorum.QuorumError
	if !errors.As(err, &detail) || detail.RetryAfter < time.Minute/2 {
		t.Errorf("%v, want to be told to come back when redsync's lock has expired", err)
	}
	c.want(t, "string", len(c))
	if ok, err := theirs.Unlock(); !ok || err != nil {
		t.Errorf("redsync's unlock: %v, %v", ok, err)
	}
	must(t, acquire(t, locks).Release(t.Context()))
}

func TestRealWaiterHereGetsWhatRedsyncGaveBack(t *testing.T) {
	c := start(t)
	locks, theirs := c.open(t), c.redsync()
	must(t, theirs.Lock())
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience) // shorter than redsync's expiry
		defer cancel()
		lease, err := locks.Acquire(ctx, name)
		if err == nil {
			err = lease.Release(ctx)
		}
		got <- err
	}()
	for heard := int64(0); heard == 0; time.Sleep(5 * time.Millisecond) { // it waits when it listens
		channels, err := c[0].Client().PubSubChannels(t.Context(), "*").Result()
		must(t, err)
		heard = int64(len(channels))
	}
	_, err := theirs.Unlock()
	must(t, err)
	must(t, <-got)
}

// What one of them left on a minority is no hindrance to the other, and stays where it is.
func TestRealNeitherTouchesWhatTheOtherLeft(t *testing.T) {
	c := start(t)
	locks, theirs := c.open(t), c.redsync(redsync.WithSetNXOnExtend())
	must(t, acquire(t, locks).Release(t.Context())) // the nodes know us now
	c.want(t, "none", len(c))

	for _, s := range c[:2] {
		must(t, s.Client().Set(t.Context(), name, "left by redsync", 0).Err())
	}
	lease := acquire(t, locks)
	c.want(t, "hash", 3)
	must(t, lease.Renew(t.Context()))
	must(t, lease.Release(t.Context()))
	c.want(t, "none", 3)
	c.want(t, "string", 2)

	for _, s := range c[:2] {
		must(t, s.Client().Del(t.Context(), name).Err())
		must(t, s.Client().HSet(t.Context(), name, "left:1", 1).Err())
	}
	must(t, theirs.Lock())
	if ok, err := theirs.Extend(); !ok {
		t.Errorf("redsync's extend: %v", err)
	}
	if ok, err := theirs.Unlock(); !ok {
		t.Errorf("redsync's unlock: %v", err)
	}
	c.want(t, "none", 3)
	c.want(t, "hash", 2)
}

func TestRealForceReleaseFreesWhatRedsyncHolds(t *testing.T) {
	c := start(t)
	locks, theirs := c.open(t), c.redsync()
	must(t, theirs.Lock())
	if held, err := locks.ForceRelease(t.Context(), name); !held || err != nil {
		t.Fatalf("force-release: %v, %v", held, err)
	}
	must(t, acquire(t, locks).Release(t.Context()))
	if ok, err := theirs.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("redsync's unlock of what was force-released: %v, %v", ok, err)
	}
}

// Once the caller's context has ended redsync takes nothing back, and the lock stays closed until it expires.
func TestRealRedsyncLeavesKeysBehindAContextThatEnded(t *testing.T) {
	c := start(t)
	theirs := c.redsync()
	must(t, theirs.Lock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, err := theirs.UnlockContext(ctx); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("redsync's unlock: %v, %v", ok, err)
	}
	c.want(t, "string", len(c))

	// Ours are sent whatever becomes of the context.
	_, err := theirs.Unlock()
	must(t, err)
	lease := acquire(t, c.open(t))
	wantIs(t, lease.Release(ctx), context.Canceled)
	c.want(t, "none", len(c))
}
