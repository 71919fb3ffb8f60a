package migrate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what is certain to come.
const patience = 20 * time.Second

// name is the lock of both kinds.
const name = "stock"

// cluster is five real servers.
type cluster []*redisserver.Server

func start(t *testing.T) cluster {
	t.Helper()
	return redisserver.StartN(t, 5)
}

// options are the servers as a program has them.
func (c cluster) options() []*redis.Options {
	var all []*redis.Options
	for _, s := range c {
		all = append(all, &redis.Options{Addr: s.Addr()})
	}
	return all
}

// open returns a coordinator as the documents do.
func (c cluster) open(t *testing.T) *quorum.Coordinator {
	t.Helper()
	locks, err := open(t.Context(), c.options())
	must(t, err)
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// have counts the servers on which a key is of a type.
func (c cluster) have(t *testing.T, kind string) (n int) {
	t.Helper()
	for _, s := range c {
		got, err := s.Client().Type(t.Context(), name).Result()
		must(t, err)
		if got == kind {
			n++
		}
	}
	return n
}

// want waits until so many servers have a key of a type: the last answers of an operation come after its quorum.
func (c cluster) want(t *testing.T, kind string, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); c.have(t, kind) != want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v %d servers have a %s, want %d", patience, c.have(t, kind), kind, want)
		}
	}
}

// acquire takes the lock, however long that takes: a machine that stands still for a moment costs an attempt, and no test.
func acquire(t *testing.T, locks *quorum.Coordinator) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := locks.Acquire(ctx, name)
	must(t, err)
	return lease
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}
