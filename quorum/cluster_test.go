package quorum_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
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
	"github.com/redquorum/redquorum/script"
)

var long = flag.Bool("long", os.Getenv("REDQUORUM_LONG") == "1",
	"run tests of crowds as well, which compute for seconds; so does REDQUORUM_LONG=1, for all packages at once")

// needsLong skips a test that only -long runs.
func needsLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("it computes for seconds: -long runs it")
	}
}

func TestMain(m *testing.M) {
	// A default. The collector, which shares the one thread of a bubble, would take a third of the time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1000) // half a gigabyte
	}
	goleak.VerifyTestMain(m)
}

// ttl is the TTL of the tests in fake time, where a second costs nothing.
const ttl = 30 * time.Second

// cluster is some nodes on an unkind network, in fake time.
type cluster struct {
	t     *testing.T
	clock clock.Clock
	nodes []*faultnet.Node
	log   *journal
}

// inBubble runs a test in fake time, over n nodes. Every client that the test makes is closed, and at the end nothing
// may be left on any node but fences and revocations.
func inBubble(t *testing.T, n int, test func(t *testing.T, cl *cluster)) {
	t.Helper()
	// Go 1.26's race detector crashes in a bubble when two threads find a timer due at the same moment
	// (runtime.timer.maybeRunChan shares the bubble's race context without a lock). One thread at a time cannot.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		cl := &cluster{t: t, clock: clock.NewPortable(), log: &journal{}}
		cl.nodes = faultnet.New(t, n)
		cl.found()
		test(t, cl)
	})
}

// found makes the nodes a cluster that has been in use: with records, and nothing else.
func (cl *cluster) found() {
	cl.t.Helper()
	c := cl.client(quorum.Config{})
	mustRelease(cl.t, mustAcquire(cl.t, c, context.Background(), "found"))
	if err := c.Close(); err != nil {
		cl.t.Fatal(err)
	}
	for _, n := range cl.nodes {
		n.Redis().Del(script.FenceKey("found"))
	}
	time.Sleep(time.Minute) // so long ago that nobody takes it for new
}

// untouched checks that nothing was done to any node since dials were counted.
func (cl *cluster) untouched(dials int) {
	cl.t.Helper()
	if n := cl.dials(); n != dials {
		cl.t.Errorf("nodes were dialled %d times", n-dials)
	}
}

// dials counts the connections made to all nodes so far.
func (cl *cluster) dials() int {
	sum := 0
	for _, n := range cl.nodes {
		sum += n.Dials()
	}
	return sum
}

// client returns a coordinator of its own, as another process would have.
func (cl *cluster) client(cfg quorum.Config) *quorum.Coordinator {
	cl.t.Helper()
	return cl.clientOn(&faultnet.Cable{}, cfg)
}

// warmClient returns one that is connected to all nodes, which know its scripts, and waits for nothing any more.
func (cl *cluster) warmClient(cfg quorum.Config) *quorum.Coordinator {
	cl.t.Helper()
	c := cl.client(cfg)
	mustRelease(cl.t, mustAcquire(cl.t, c, context.Background(), "warm"))
	time.Sleep(time.Second)
	return c
}

// warmAt returns a warm client, a delay away from every node.
func (cl *cluster) warmAt(delay time.Duration) *quorum.Coordinator {
	cl.t.Helper()
	for _, n := range cl.nodes {
		n.Delay(delay)
	}
	return cl.warmClient(quorum.Config{})
}

// clientOn returns one at the end of a cable.
func (cl *cluster) clientOn(cable *faultnet.Cable, cfg quorum.Config) *quorum.Coordinator {
	cl.t.Helper()
	if cfg.TTL == 0 {
		cfg.TTL = ttl
	}
	cfg.Clock = cl.clock
	cfg.Logger = slog.New(slog.NewTextHandler(cl.log, nil))
	var nodes []*node.Node
	for _, n := range cl.nodes {
		nodes = append(nodes, n.Open(cl.t, cl.clock, cable))
	}
	c, err := quorum.New(nodes, cfg)
	if err != nil {
		cl.t.Fatal(err)
	}
	cl.t.Cleanup(func() { _ = c.Close() })
	return c
}

// holders are who has the lock, node by node; "" where nobody has.
func (cl *cluster) holders(name string) []string {
	who := make([]string, len(cl.nodes))
	for i, n := range cl.nodes {
		if keys, err := n.Redis().HKeys(name); err == nil && len(keys) > 0 {
			who[i] = keys[0]
		}
	}
	return who
}

// present counts the nodes on which somebody has the lock.
func (cl *cluster) present(name string) int {
	n := 0
	for _, who := range cl.holders(name) {
		if who != "" {
			n++
		}
	}
	return n
}

// own makes a stranger the owner of a lock on some nodes.
func own(nodes []*faultnet.Node, name, holder string) {
	for _, n := range nodes {
		n.Redis().Del(name)
		n.Redis().HSet(name, holder, "1")
	}
}

// fence is the fence of a node, as Redis stores it.
func (cl *cluster) fence(i int, name string) string {
	v, _ := cl.nodes[i].Redis().Get(script.FenceKey(name))
	return v
}

// eventually waits, in fake time, until the condition holds.
func (cl *cluster) eventually(within time.Duration, what string, condition func() bool) {
	cl.t.Helper()
	deadline := time.Now().Add(within)
	for {
		synctest.Wait()
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			cl.t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// never checks, in fake time, that the condition does not hold at any time.
func (cl *cluster) never(during time.Duration, what string, condition func() bool) {
	cl.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		synctest.Wait()
		if condition() {
			cl.t.Fatalf("it did happen: %s", what)
		}
	}
}

// journal collects log lines.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// count is how often a text was logged.
func (j *journal) count(text string) int { return strings.Count(j.String(), text) }

// mustAcquire acquires, at once.
func mustAcquire(t *testing.T, c *quorum.Coordinator, ctx context.Context, name string, opts ...quorum.Option) *quorum.Lease { //nolint:revive // t comes first in a test
	t.Helper()
	l, err := c.TryAcquire(ctx, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustRelease releases.
func mustRelease(t *testing.T, l *quorum.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// wantIs checks an error's class.
func wantIs(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("error is %v, want one that matches %v", err, class)
	}
}

// wantIsNot checks what an error must not match.
func wantIsNot(t *testing.T, err, class error) {
	t.Helper()
	if errors.Is(err, class) {
		t.Fatalf("error %v matches %v and must not", err, class)
	}
}

// contains tells whether a text contains all the parts.
func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// skewed is a clock whose wall time is wrong.
type skewed struct {
	clock.Clock
	by time.Duration
}

func (s skewed) Wall() time.Time { return s.Clock.Wall().Add(s.by) }

// suspendable is a clock that a test can move on at once, as a suspend of the machine does.
type suspendable struct {
	clock.Clock
	mu sync.Mutex
	by time.Duration
}

func (s *suspendable) Now() clock.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clock.Now().Add(s.by)
}

func (s *suspendable) sleep(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += d
}

// ear hears what a node announces about a lock. It comes before the clients, and so goes after them: miniredis does not bear
// that one comes or goes while it is asked who listens, or told something, nor that nobody reads what it is told.
func (cl *cluster) ear(i int, name string) (heard <-chan string) {
	sub, all := cl.nodes[i].Redis().NewSubscriber(), make(chan string, 1000)
	cl.t.Cleanup(sub.Close)
	sub.Subscribe(script.Channel(name))
	go func() {
		for m := range sub.Messages() {
			all <- m.Message
		}
	}()
	return all
}
