package certmagiclock_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/certmagiclock"
)

func TestMain(m *testing.M) {
	if ca := os.Getenv(caVariable); ca != "" {
		os.Exit(server(ca)) // this is no test but one of its processes: see real_test.go
	}
	// The test CA never ends what it checks challenges with.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/letsencrypt/pebble/v2/va.VAImpl.processTasks"))
}

// Of the tests in fake time, where a second costs nothing. moment is more than the nodes take, and less than counts.
const (
	ttl    = 30 * time.Second
	moment = 10 * time.Millisecond
)

// name is a lock as CertMagic calls it.
const name = "issue_cert_example.test"

// cluster is five nodes in fake time, a folder that all servers share, and what was logged.
type cluster struct {
	t     *testing.T
	clock clock.Clock
	nodes []*faultnet.Node
	files *certmagic.FileStorage
	log   *journal
}

func inBubble(t *testing.T, test func(t *testing.T, cl *cluster)) {
	t.Helper()
	// Go 1.26's race detector crashes in a bubble when two threads find a timer due at the same moment. One thread at a
	// time cannot.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	files := &certmagic.FileStorage{Path: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		test(t, &cluster{t, clock.NewPortable(), faultnet.New(t, 5), files, &journal{}})
	})
}

// client returns a coordinator of its own, as another process would have.
func (cl *cluster) client() *quorum.Coordinator {
	cl.t.Helper()
	var nodes []*node.Node
	for _, n := range cl.nodes {
		nodes = append(nodes, n.Open(cl.t, cl.clock, &faultnet.Cable{}))
	}
	// Without the guard, which would take the first seconds to find the nodes new.
	c, err := quorum.New(nodes, quorum.Config{TTL: ttl, Clock: cl.clock, NoRestartGuard: true})
	must(cl.t, err)
	cl.t.Cleanup(func() { _ = c.Close() })
	return c
}

// storage returns what a server of its own has.
func (cl *cluster) storage() *certmagiclock.Storage {
	cl.t.Helper()
	return cl.storageOn(cl.client())
}

func (cl *cluster) storageOn(c *quorum.Coordinator) *certmagiclock.Storage {
	cl.t.Helper()
	s, err := certmagiclock.New(cl.files, c, certmagiclock.Config{Logger: slog.New(slog.NewTextHandler(cl.log, nil))})
	must(cl.t, err)
	return s
}

// steal frees a lock while its holder believes in it, and waits until the holder must have found out.
func (cl *cluster) steal() {
	cl.t.Helper()
	held, err := cl.client().ForceRelease(cl.t.Context(), certmagiclock.DefaultPrefix+name)
	must(cl.t, err)
	if !held {
		cl.t.Fatal("nobody has the lock")
	}
	time.Sleep(ttl / 2)
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
