package script_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// java is the other party: a client of Redisson's RLock, with the scripts it has sent for years.
type java struct {
	t      *testing.T
	c      *redis.Client
	holder string
}

// acquire returns nil when it has the lock, else how long to wait.
func (j java) acquire() any {
	j.t.Helper()
	return j.eval(`
		if (redis.call('exists', KEYS[1]) == 0) then
			redis.call('hincrby', KEYS[1], ARGV[2], 1);
			redis.call('pexpire', KEYS[1], ARGV[1]);
			return nil;
		end;
		if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then
			redis.call('hincrby', KEYS[1], ARGV[2], 1);
			redis.call('pexpire', KEYS[1], ARGV[1]);
			return nil;
		end;
		return redis.call('pttl', KEYS[1]);`,
		[]string{name}, ttl.Milliseconds(), j.holder)
}

// unlock returns nil when the lock is not its own, 0 when it still has it, 1 when it is free.
func (j java) unlock() any {
	j.t.Helper()
	return j.eval(`
		if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then
			return nil;
		end;
		local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1);
		if (counter > 0) then
			redis.call('pexpire', KEYS[1], ARGV[2]);
			return 0;
		else
			redis.call('del', KEYS[1]);
			redis.call('publish', KEYS[2], ARGV[1]);
			return 1;
		end;
		return nil;`,
		[]string{name, "redisson_lock__channel:{" + name + "}"}, "0", ttl.Milliseconds(), j.holder)
}

// renew returns 1 when the lock is its own.
func (j java) renew() any {
	j.t.Helper()
	return j.eval(`
		if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then
			redis.call('pexpire', KEYS[1], ARGV[1]);
			return 1;
		end;
		return 0;`,
		[]string{name}, ttl.Milliseconds(), j.holder)
}

func (j java) eval(source string, keys []string, args ...any) any {
	j.t.Helper()
	v, err := j.c.Eval(j.t.Context(), source, keys, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		j.t.Fatal(err)
	}
	return v
}

func TestRedissonIsExcludedByUs(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		j := java{t, c, them}
		wantStatus(t, run(t, c, anAcquire), script.Granted)
		unchanged(t, c, func() {
			wait, ok := j.acquire().(int64)
			if !ok || !about(time.Duration(wait)*time.Millisecond, ttl) {
				t.Errorf("Redisson got %v for our lock, want its PTTL", wait)
			}
			if got := j.renew(); got != int64(0) {
				t.Errorf("Redisson renewed our lock: %v", got)
			}
			if got := j.unlock(); got != nil {
				t.Errorf("Redisson unlocked our lock: %v", got)
			}
		})
		run(t, c, aRelease)
		if got := j.acquire(); got != nil {
			t.Errorf("Redisson got %v for a lock we released", got)
		}
	})
}

func TestWeAreExcludedByRedisson(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		j := java{t, c, them}
		for count := 1; count <= 2; count++ {
			if got := j.acquire(); got != nil {
				t.Fatalf("Redisson got %v for a free lock", got)
			}
			for _, req := range []script.Request{anAcquire, aRenewal, aRaise, aRollback, aLook} {
				unchanged(t, c, func() {
					got := run(t, c, req)
					if got.Status != script.Held || got.Holder != them || got.Count != count || !about(got.TTL, ttl) {
						t.Errorf("%s: got %+v, want held by Redisson with %d", req.Script().Name, got, count)
					}
				})
			}
		}
		for _, left := range []int64{0, 1} {
			if got := j.unlock(); got != left {
				t.Errorf("Redisson's unlock: %v, want %d", got, left)
			}
		}
		wantStatus(t, run(t, c, anAcquire), script.Granted)
	})
}

// The hash is Redisson's: it could even go on with our lock, given our name.
func TestTheLockIsRedissonsHash(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		j := java{t, c, us}
		req := anAcquire
		req.Count = 2
		run(t, c, req)
		wantHash(t, c, map[string]string{us: "2"})
		j.acquire()
		wantHash(t, c, map[string]string{us: "3"})
		if got := j.renew(); got != int64(1) {
			t.Errorf("Redisson's renewal of our lock: %v", got)
		}
		for _, left := range []int64{0, 0, 1} {
			if got := j.unlock(); got != left {
				t.Errorf("Redisson's unlock: %v, want %d", got, left)
			}
		}
		wantStatus(t, run(t, c, aRelease), script.Absent)
	})
}

func TestRedissonsMessagesAreOurs(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		j := java{t, c, them}
		heard := hearing(t, c, name, func() {
			j.acquire()
			j.unlock()
			run(t, c, anAcquire)
			run(t, c, aRelease)
		})
		wantHeard(t, heard, "{"+name+"} "+script.Free, "{"+name+"} "+script.Free)
	})
}

func TestForceReleaseOfRedissonsLock(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		j := java{t, c, them}
		j.acquire()
		got := run(t, c, script.ForceRelease{Name: name, Holders: []string{them}})
		if got.Status != script.Released || got.Holder != them || got.Count != 1 {
			t.Errorf("got %+v, want released from Redisson", got)
		}
		if got := j.renew(); got != int64(0) {
			t.Errorf("Redisson renewed a lock that was taken from it: %v", got)
		}
	})
}
