package docker_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/docker"
)

// dial returns a client of one node, which does one thing at a time and repeats
// nothing.
func dial(t testing.TB, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	ok(t, err)
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.ContextTimeoutEnabled = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func clients(t testing.TB, c *docker.Cluster) []*redis.Client {
	t.Helper()
	var all []*redis.Client
	for _, url := range c.URLs() {
		all = append(all, dial(t, url))
	}
	return all
}

// setting asks a node for one of its settings.
func setting(t testing.TB, c *redis.Client, name string) string {
	t.Helper()
	got, err := c.ConfigGet(t.Context(), name).Result()
	ok(t, err)
	return got[name]
}

// hangs tells that a node neither answers nor breaks the connection.
func hangs(t testing.TB, c *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := c.Ping(ctx).Err()
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("asking a node that should hang: %v, want a timeout", err)
	}
}

func refuses(t testing.TB, c *redis.Client) {
	t.Helper()
	if conn, err := net.Dial("tcp4", c.Options().Addr); err == nil {
		conn.Close()
		t.Errorf("%s accepts connections, and should refuse them", c.Options().Addr)
	}
}

func TestNodesAreIndependentMasters(t *testing.T) {
	t.Parallel()
	nodes := clients(t, start(t, 3, docker.Options{}))
	ok(t, nodes[0].Set(t.Context(), "only here", 1, 0).Err())
	for i, want := range []int64{1, 0, 0} {
		if got := nodes[i].DBSize(t.Context()).Val(); got != want {
			t.Errorf("node %d has %d keys, want %d", i, got, want)
		}
		if got := setting(t, nodes[i], "maxmemory-policy"); got != "noeviction" {
			t.Errorf("node %d: maxmemory-policy %q", i, got)
		}
		if got := setting(t, nodes[i], "appendonly") + setting(t, nodes[i], "save"); got != "no" {
			t.Errorf("node %d persists: appendonly and save are %q", i, got)
		}
	}
}

func TestRestartedNodeIsEmptyAtItsAddress(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, docker.Options{})
	node := dial(t, cluster.URLs()[0])
	for _, down := range []func(int) error{
		cluster.Kill,
		cluster.Stop,
		func(i int) error { ok(t, cluster.Pause(i)); return cluster.Kill(i) },
	} {
		ok(t, node.Set(t.Context(), "key", 1, 0).Err())
		ok(t, down(0))
		ok(t, errors.Join(cluster.Kill(0), cluster.Stop(0))) // a node that is down is left so
		refuses(t, node)
		ok(t, cluster.Restart(0, false))
		eventually(t, "an empty node", func() bool {
			n, err := node.DBSize(t.Context()).Result()
			return err == nil && n == 0
		})
	}
	if err := cluster.Restart(0, true); err == nil {
		t.Error("restarted with data that it never kept")
	}
}

func TestPersistentNodeKeepsWhatItAnswered(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, docker.Options{Persistence: docker.Always})
	node := dial(t, cluster.URLs()[0])
	for name, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no",
	} {
		if got := setting(t, node, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	keys := func() int64 {
		var n int64
		eventually(t, "an answer", func() (answered bool) {
			var err error
			n, err = node.DBSize(t.Context()).Result()
			return err == nil
		})
		return n
	}
	ok(t, node.Set(t.Context(), "key", 1, 0).Err())
	ok(t, cluster.Restart(0, true))
	if n := keys(); n != 1 {
		t.Errorf("after a restart with its data: %d keys", n)
	}
	ok(t, cluster.Restart(0, false))
	if n := keys(); n != 0 {
		t.Errorf("after a restart without its data: %d keys", n)
	}
}

func TestPausedNodeHangsAndGoesOn(t *testing.T) {
	t.Parallel()
	cluster := start(t, 1, docker.Options{})
	node := dial(t, cluster.URLs()[0])
	ok(t, node.Ping(t.Context()).Err())
	ok(t, cluster.Pause(0))
	hangs(t, node)
	ok(t, cluster.Unpause(0))
	ok(t, node.Ping(t.Context()).Err())
}

func TestInvalidInput(t *testing.T) {
	for _, n := range []int{0, -1} {
		if _, err := docker.Start(t.Context(), n, docker.Options{}); err == nil {
			t.Errorf("started %d nodes", n)
		}
	}
	if _, err := docker.Start(t.Context(), 1, docker.Options{Persistence: 7}); err == nil {
		t.Error("started with persistence 7")
	}
	cluster := start(t, 1, docker.Options{})
	for _, i := range []int{-1, 1} {
		if cluster.Kill(i) == nil || cluster.Heal(i) == nil || cluster.Restart(i, false) == nil {
			t.Errorf("node %d of 1: want an error", i)
		}
	}
	if err := cluster.Unpause(0); err == nil {
		t.Error("unpaused a node that was not paused")
	}
	ok(t, cluster.Close())
	ok(t, cluster.Close())
	if err := cluster.Restart(0, false); !errors.Is(err, docker.ErrClosed) {
		t.Errorf("restarting a node of a closed cluster: %v", err)
	}
}
