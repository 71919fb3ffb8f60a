package gocronlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/gocronlock"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(taskVariable); task != "" {
		os.Exit(replica(task)) // this is no test but one of its processes: see real_test.go
	}
	goleak.VerifyTestMain(m)
}

// Of the tests in fake time, where a second costs nothing. moment is more than the nodes take, and less than counts.
const (
	ttl    = 30 * time.Second
	hold   = 5 * time.Second
	moment = 10 * time.Millisecond
)

// cluster is five nodes in fake time, and what was logged.
type cluster struct {
	t     *testing.T
	clock clock.Clock
	nodes []*faultnet.Node
	log   *journal
}

func inBubble(t *testing.T, test func(t *testing.T, cl *cluster)) {
	t.Helper()
	// Go 1.26's race detector crashes in a bubble when two threads find a timer due at the same moment. One thread at a
	// time cannot.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		test(t, &cluster{t: t, clock: clock.NewPortable(), nodes: faultnet.New(t, 5), log: &journal{}})
	})
}

// client returns a coordinator of its own, as another process would have.
func (cl *cluster) client() *quorum.Coordinator {
	cl.t.Helper()
	return cl.clientOn(&faultnet.Cable{})
}

// clientOn returns one at the end of a cable.
func (cl *cluster) clientOn(cable *faultnet.Cable) *quorum.Coordinator {
	cl.t.Helper()
	var nodes []*node.Node
	for _, n := range cl.nodes {
		nodes = append(nodes, n.Open(cl.t, cl.clock, cable))
	}
	// Without the guard, which would take the first seconds to find the nodes new.
	c, err := quorum.New(nodes, quorum.Config{TTL: ttl, Clock: cl.clock, NoRestartGuard: true})
	must(cl.t, err)
	cl.t.Cleanup(func() { _ = c.Close() })
	return c
}

// locker returns one of a process of its own.
func (cl *cluster) locker() *gocronlock.Locker {
	cl.t.Helper()
	return cl.lockerOn(cl.client())
}

func (cl *cluster) lockerOn(c *quorum.Coordinator) *gocronlock.Locker {
	cl.t.Helper()
	l, err := gocronlock.New(c, gocronlock.Config{MinHold: hold, Logger: slog.New(slog.NewTextHandler(cl.log, nil))})
	must(cl.t, err)
	return l
}

// forceRelease frees the lock of a job while its holder believes in it, and waits until the holder knows.
func (cl *cluster) forceRelease(job string, l *gocronlock.Locker) {
	cl.t.Helper()
	lease := l.Lease(job)
	held, err := cl.client().ForceRelease(cl.t.Context(), gocronlock.DefaultPrefix+job)
	must(cl.t, err)
	if !held {
		cl.t.Fatalf("nobody has the lock of %s", job)
	}
	<-lease.Done()
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

// run takes the lock of a job and gives it back after some time.
func run(t *testing.T, l *gocronlock.Locker, job string, takes time.Duration) error {
	t.Helper()
	lock, err := l.Lock(t.Context(), job)
	must(t, err)
	time.Sleep(takes)
	return lock.Unlock(t.Context())
}

// journal collects what was logged.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.buf.String(), text)
}

// over is a context that has ended, as gocron's has at a shutdown.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
