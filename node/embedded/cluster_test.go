package embedded_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/direct"
	"github.com/redquorum/redquorum/node/embedded"
)

const patience = 10 * time.Second

func start(t *testing.T, n int) *embedded.Cluster {
	t.Helper()
	c, err := embedded.Start(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// dial is a client that tries once: what a node does is seen at once.
func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.MaxRetries = -1
	client := direct.New(opts)
	t.Cleanup(func() { client.Close() })
	return client
}

// must takes the value of a call that cannot fail in a healthy test.
func must[T any](t *testing.T, cmd interface{ Result() (T, error) }) T {
	t.Helper()
	v, err := cmd.Result()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition that only time, or somebody else, brings about.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func TestNodesAreIndependent(t *testing.T) {
	c := start(t, 3)
	must(t, dial(t, c.URLs()[1]).Set(t.Context(), "only", "here", 0))
	for i, want := range []int64{0, 1, 0} {
		if got := must(t, dial(t, c.URLs()[i]).DBSize(t.Context())); got != want {
			t.Errorf("node %d has %d keys, want %d", i, got, want)
		}
	}
}

func TestURLsAreLoopbackAndLast(t *testing.T) {
	c := start(t, 3)
	before := c.URLs()
	for i, url := range before {
		if !strings.HasPrefix(url, "redis://127.0.0.1:") {
			t.Errorf("node %d is at %s", i, url)
		}
	}
	ok(t, c.Stop(0))
	ok(t, c.Restart(0, false))
	ok(t, c.Stop(1))
	for i, url := range c.URLs() {
		if url != before[i] {
			t.Errorf("node %d moved from %s to %s", i, before[i], url)
		}
	}
}

func TestStopBreaksConnectionsAndRefusesNewOnes(t *testing.T) {
	c := start(t, 1)
	addr := strings.TrimPrefix(c.URLs()[0], "redis://")
	conn, err := net.Dial("tcp4", addr)
	ok(t, err)
	defer conn.Close()
	ok(t, c.Stop(0))
	ok(t, c.Stop(0)) // a stopped node is left so

	ok(t, conn.SetReadDeadline(time.Now().Add(patience)))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection from before the stop: %v, want it broken", err)
	}
	if conn, err := net.Dial("tcp4", addr); err == nil {
		conn.Close()
		t.Error("a stopped node accepted a connection")
	}
}

func TestStopEndsSubscriptions(t *testing.T) {
	c := start(t, 1)
	sub := dial(t, c.URLs()[0]).Subscribe(t.Context(), "channel")
	defer sub.Close()
	_, err := sub.Receive(t.Context())
	ok(t, err)
	ok(t, c.Stop(0))
	if _, err := sub.ReceiveTimeout(t.Context(), patience); err == nil {
		t.Error("a subscriber heard nothing of the stop")
	}
}

func TestRestartWithoutDataForgetsEverything(t *testing.T) {
	c := start(t, 1)
	client := dial(t, c.URLs()[0])
	must(t, client.Set(t.Context(), "key", "value", 0))
	ok(t, c.Restart(0, false)) // a running node: crash and restart in one
	if n := must(t, client.DBSize(t.Context())); n != 0 {
		t.Errorf("%d keys survived", n)
	}
}

func TestRestartWithDataKeepsWhatHasNotExpired(t *testing.T) {
	c := start(t, 1)
	client := dial(t, c.URLs()[0])
	must(t, client.Set(t.Context(), "brief", "value", 40*time.Millisecond))
	must(t, client.Set(t.Context(), "long", "value", time.Hour))
	must(t, client.Set(t.Context(), "for ever", "value", 0))
	expired := time.Now().Add(40 * time.Millisecond)
	ok(t, c.Stop(0))
	eventually(t, "the brief key's end", func() bool { return time.Now().After(expired) })
	ok(t, c.Restart(0, true))

	got := must(t, client.Exists(t.Context(), "brief"))
	if got != 0 {
		t.Error("a key that expired while its node was stopped came back")
	}
	if ttl := must(t, client.PTTL(t.Context(), "long")); ttl <= 0 || ttl > time.Hour-40*time.Millisecond {
		t.Errorf("a key of one hour has %v left: time stood still while its node was stopped", ttl)
	}
	if ttl := must(t, client.PTTL(t.Context(), "for ever")); ttl != -1 {
		t.Errorf("a key without an end has TTL %v", ttl)
	}
}

func TestRestartEmptiesTheScriptCache(t *testing.T) {
	for _, keepData := range []bool{false, true} {
		c := start(t, 1)
		client := dial(t, c.URLs()[0])
		sha := must(t, client.ScriptLoad(t.Context(), "return 1"))
		must(t, client.EvalSha(t.Context(), sha, nil))
		ok(t, c.Restart(0, keepData))
		err := client.EvalSha(t.Context(), sha, nil).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
			t.Errorf("keepData %v: EVALSHA after a restart: %v, want NOSCRIPT", keepData, err)
		}
	}
}

func TestBlockingCommandsWorkAfterRestart(t *testing.T) {
	c := start(t, 1)
	ok(t, c.Restart(0, true))
	err := dial(t, c.URLs()[0]).Do(t.Context(), "BLPOP", "empty", "0.01").Err()
	if !errors.Is(err, redis.Nil) {
		t.Errorf("waiting on an empty list: %v, want the answer that nothing came", err)
	}
}

func TestHungNodeAnswersNothingUntilResumed(t *testing.T) {
	c := start(t, 2)
	client, other := dial(t, c.URLs()[0]), dial(t, c.URLs()[1])
	sha := must(t, client.ScriptLoad(t.Context(), "return redis.call('INCR', KEYS[1])"))
	ok(t, c.Hang(0))
	ok(t, c.Hang(0))
	for name, ask := range map[string]func(context.Context) error{
		"PING":    func(ctx context.Context) error { return client.Ping(ctx).Err() },
		"EVALSHA": func(ctx context.Context) error { return client.EvalSha(ctx, sha, []string{"late"}).Err() },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s to a hung node: %v, want a timeout", name, err)
		}
		cancel()
	}
	must(t, other.Ping(t.Context())) // the neighbour is well

	ok(t, c.Resume(0))
	ok(t, c.Resume(0))
	// What nobody waits for any more is carried out all the same.
	eventually(t, "the late request", func() bool {
		return client.Get(t.Context(), "late").Val() == "1"
	})
}

func TestHungNodeCanBeStoppedRestartedAndClosed(t *testing.T) {
	c := start(t, 1)
	client := dial(t, c.URLs()[0])
	ok(t, c.Hang(0))
	ok(t, c.Stop(0))
	ok(t, c.Hang(0)) // nothing to hang
	ok(t, c.Restart(0, true))
	must(t, client.Ping(t.Context()))
	ok(t, c.Hang(0))
	ok(t, c.Restart(0, false))
	must(t, client.Ping(t.Context()))
	ok(t, c.Hang(0))
	c.Close()
}

func TestInvalidArguments(t *testing.T) {
	for _, n := range []int{0, -1} {
		c, err := embedded.Start(n)
		if err == nil {
			c.Close()
			t.Fatalf("Start(%d) succeeded", n)
		}
		if want := "at least 1"; !strings.Contains(err.Error(), want) {
			t.Errorf("Start(%d): %q does not say %q", n, err, want)
		}
	}
	c := start(t, 3)
	for name, call := range map[string]func(int) error{
		"Stop":    c.Stop,
		"Restart": func(i int) error { return c.Restart(i, true) },
		"Hang":    c.Hang,
		"Resume":  c.Resume,
	} {
		for i, value := range map[int]string{-1: "node -1", 3: "node 3"} {
			err := call(i)
			if err == nil {
				t.Errorf("%s(%d) of 3 nodes succeeded", name, i)
				continue
			}
			for _, want := range []string{name, value, "from 0 to 2"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s(%d): %q does not say %q", name, i, err, want)
				}
			}
		}
	}
}

func TestCloseIsFinalAndIdempotent(t *testing.T) {
	c := start(t, 2)
	c.Close()
	c.Close()
	for _, url := range c.URLs() {
		if err := dial(t, url).Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s still answers", url)
		}
	}
	if err := c.Restart(0, true); !errors.Is(err, embedded.ErrClosed) {
		t.Errorf("Restart after Close: %v, want ErrClosed", err)
	}
	ok(t, c.Stop(0))
}

// TestHammer changes the lives of nodes from all sides while clients use them.
func TestHammer(t *testing.T) {
	c := start(t, 2)
	var wg sync.WaitGroup
	for i := range 2 {
		client := dial(t, c.URLs()[i])
		for _, change := range []func(int) error{
			c.Stop,
			func(i int) error { return c.Restart(i, true) },
			func(i int) error { return c.Restart(i, false) },
			c.Hang,
			c.Resume,
		} {
			wg.Go(func() {
				for range 50 {
					if err := change(i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				client.Incr(ctx, "n") // fails as often as not
				cancel()
			}
		})
	}
	wg.Wait()
	for i := range 2 {
		ok(t, c.Restart(i, false))
		must(t, dial(t, c.URLs()[i]).Ping(t.Context()))
	}
}
