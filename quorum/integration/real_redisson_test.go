package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// redisson is the other party: the RedLock of a Java service, which runs the classic scripts of RLock on each server.
type redisson struct {
	m       *machines
	holders []string // one for each server; RedLock has another on each
	name    string
	channel string
}

// TTL of its locks, in milliseconds: too long to run out in a test.
const redissonTTL = 30_000

func (r redisson) eval(i int, source string, keys []string, args ...any) any {
	r.m.T.Helper()
	v, err := r.m.Servers[i].Client().Eval(r.m.T.Context(), source, keys, args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	r.m.Must(err)
	return v
}

// acquire returns nil where it has the lock, else how long the lock lives.
func (r redisson) acquire(i int) any {
	r.m.T.Helper()
	return r.eval(i, `
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
		[]string{r.name}, redissonTTL, r.holders[i])
}

// renew returns 1 where it has the lock.
func (r redisson) renew(i int) any {
	r.m.T.Helper()
	return r.eval(i, `
		if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then
			redis.call('pexpire', KEYS[1], ARGV[1]);
			return 1;
		end;
		return 0;`,
		[]string{r.name}, redissonTTL, r.holders[i])
}

// unlock returns nil where it does not have the lock, 0 where it still has it, 1 where it is free now.
func (r redisson) unlock(i int) any {
	r.m.T.Helper()
	return r.eval(i, `
		if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then
			return nil;
		end;
		local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1);
		if (counter > 0) then
			redis.call('pexpire', KEYS[1], ARGV[2]);
			return 0;
		end;
		redis.call('del', KEYS[1]);
		redis.call('publish', KEYS[2], ARGV[1]);
		return 1;`,
		[]string{r.name, r.channel}, "0", redissonTTL, r.holders[i])
}

// everywhere runs a step on every server and checks what it returns.
func (r redisson) everywhere(what string, step func(int) any, want any) {
	r.m.T.Helper()
	for i := range r.m.Servers {
		if got := step(i); got != want {
			r.m.T.Fatalf("Redisson's %s on server %d: %v, want %v", what, i, got, want)
		}
	}
}

// withRedisson runs a test against both of Redisson's ways to name a holder, and both to name a channel.
func withRedisson(t *testing.T, test func(*testing.T, *machines, redisson)) {
	for _, c := range []struct{ title, name, channel, holder string }{
		{"one holder", "stock", "redisson_lock__channel:{stock}", "%.0d8743c9c0-0795-4907-87fd-6c719a6b4586:61"},
		{"a holder per node", "stock", "redisson_lock__channel:{stock}", "8743c9c0-0795-4907-87fd-6c719a6b458%d:61"},
		{"a name with braces", "{shop}:stock", "redisson_lock__channel:{shop}:stock", "%.0d8743c9c0-0795-4907-87fd-6c719a6b4586:61"},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			m := startMachines(t, 5)
			r := redisson{m: m, name: c.name, channel: c.channel}
			for i := range m.Servers {
				r.holders = append(r.holders, fmt.Sprintf(c.holder, i))
			}
			test(t, m, r)
		})
	}
}

func TestRealRedissonAndWeExcludeEachOther(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	withRedisson(t, func(t *testing.T, m *machines, r redisson) {
		c := m.Client(quorum.Config{})
		l := mustGet(t, c, r.name)
		m.eventually("on all servers", m.counts(r.name, l.Holder(), "1"))
		for i := range m.Servers {
			if ttl, ok := r.acquire(i).(int64); !ok || ttl <= 0 || ttl > realTTL.Milliseconds() {
				t.Errorf("Redisson's acquire on server %d: %v, want our lock's TTL", i, ttl)
			}
		}
		r.everywhere("renewal of our lock", r.renew, int64(0))
		r.everywhere("unlock of our lock", r.unlock, nil)
		mustRelease(t, l)
		m.Clean(time.Second)

		r.everywhere("acquire", r.acquire, nil)
		r.everywhere("second acquire", r.acquire, nil)
		for _, left := range []int64{0, 1} {
			_, err := c.TryAcquire(t.Context(), r.name)
			for errors.Is(err, quorum.ErrNoQuorum) { // the machine stood still for longer than the node timeout
				_, err = c.TryAcquire(t.Context(), r.name)
			}
			wantIs(t, err, quorum.ErrNotAcquired)
			var detail *quorum.QuorumError
			if !errors.As(err, &detail) || detail.RetryAfter < redissonTTL*time.Millisecond/2 {
				t.Errorf("%v, want to be told to come back when Redisson's TTL has run out", err)
			}
			r.everywhere("renewal", r.renew, int64(1))
			r.everywhere("unlock", r.unlock, left)
		}
		mustRelease(t, mustGet(t, c, r.name))
		m.Clean(time.Second)
	})
}

func TestRealRedissonWakesUs(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	// A waiter that hears nothing tries every half a second at the least. So it was woken if it comes sooner, once.
	const soon, attempts = 200 * time.Millisecond, 5
	withRedisson(t, func(t *testing.T, m *machines, r redisson) {
		c := m.Client(quorum.Config{})
		for attempt := 1; ; attempt++ {
			r.everywhere("acquire", r.acquire, nil)
			got := make(chan *quorum.Lease, 1)
			go func() {
				l, err := c.Acquire(t.Context(), r.name)
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			for i := range m.Servers {
				m.eventually("we listen", func() bool { return m.listeners(i, r.channel) == 1 })
			}
			m.poll() // the next one is more than soon away
			start := time.Now()
			r.everywhere("unlock", r.unlock, int64(1))
			l := <-got
			took := time.Since(start)
			if l == nil {
				return
			}
			mustRelease(t, l)
			if took < soon {
				t.Logf("woken within %v", took)
				break
			}
			if attempt == attempts {
				t.Fatalf("after %d unlocks never woken within %v, at last %v", attempts, soon, took)
			}
		}
		m.Clean(time.Second)
	})
}

func TestRealRedissonIsWokenByUs(t *testing.T) {
	redisserver.Require(t)
	withRedisson(t, func(t *testing.T, m *machines, r redisson) {
		l := mustGet(t, m.Client(quorum.Config{}), r.name)
		m.eventually("on all servers", m.counts(r.name, l.Holder(), "1"))
		var waiting []*redis.PubSub
		for _, s := range m.Servers {
			p := s.Client().Subscribe(t.Context(), r.channel)
			t.Cleanup(func() { _ = p.Close() })
			_, err := p.Receive(t.Context()) // the confirmation
			m.Must(err)
			waiting = append(waiting, p)
		}
		mustRelease(t, l)
		for i, p := range waiting {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			msg, err := p.ReceiveMessage(ctx)
			cancel()
			m.Must(err)
			if msg.Payload != "0" {
				t.Errorf("server %d announced %q, want Redisson's unlock message 0", i, msg.Payload)
			}
			if got := r.acquire(i); got != nil {
				t.Errorf("Redisson's acquire on server %d after it was woken: %v", i, got)
			}
		}
	})
}

// listeners counts the subscribers of a channel on a server.
func (m *machines) listeners(i int, channel string) int64 {
	m.T.Helper()
	n, err := m.Servers[i].Client().PubSubNumSub(m.T.Context(), channel).Result()
	m.Must(err)
	return n[channel]
}
