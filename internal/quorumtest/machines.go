package quorumtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// Machines are some real servers, and what their clients logged.
type Machines struct {
	T *testing.T
	// Servers are indexed as the nodes of every client.
	Servers []*redisserver.Server
	// TTL and Timeout are those of every client that is not told others.
	TTL, Timeout time.Duration
	Log          *Journal
}

// Start starts n servers, for the length of the test; settings are further arguments of each.
func Start(t *testing.T, n int, settings ...string) *Machines {
	t.Helper()
	m := &Machines{T: t, Log: &Journal{}}
	for range n {
		m.Servers = append(m.Servers, redisserver.Start(t, settings...))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("clients logged:\n%s", m.Log)
		}
	})
	return m
}

// Client returns a coordinator of its own, as another process would have.
func (m *Machines) Client(cfg quorum.Config) *quorum.Coordinator {
	m.T.Helper()
	return m.ClientAt(cfg, redisserver.URLs(m.Servers))
}

// ClientAt returns a coordinator that goes by other addresses.
func (m *Machines) ClientAt(cfg quorum.Config, urls []string) *quorum.Coordinator {
	m.T.Helper()
	if cfg.TTL == 0 {
		cfg.TTL = m.TTL
	}
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = m.Timeout
	}
	cfg.Logger = slog.New(slog.NewTextHandler(m.Log, nil))
	c, err := quorum.Open(cfg, urls...)
	if err != nil {
		m.T.Fatal(err)
	}
	m.T.Cleanup(func() { _ = c.Close() })
	return c
}

// BehindProxies starts a proxy for each server, and returns the addresses to go by.
func (m *Machines) BehindProxies() (proxies []*Proxy, urls []string) {
	m.T.Helper()
	for _, s := range m.Servers {
		p := StartProxy(m.T, s)
		proxies, urls = append(proxies, p), append(urls, p.URL())
	}
	return proxies, urls
}

// Pause stops servers (SIGSTOP).
func (m *Machines) Pause(which ...int) {
	m.T.Helper()
	for _, i := range which {
		m.Must(m.Servers[i].Pause())
	}
}

// Resume continues servers (SIGCONT).
func (m *Machines) Resume(which ...int) {
	m.T.Helper()
	for _, i := range which {
		m.Must(m.Servers[i].Resume())
	}
}

// Kill ends servers (SIGKILL).
func (m *Machines) Kill(which ...int) {
	for _, i := range which {
		m.Servers[i].Kill()
	}
}

// Restart starts servers empty, killing those that run.
func (m *Machines) Restart(which ...int) {
	m.T.Helper()
	for _, i := range which {
		m.Must(m.Servers[i].Restart())
	}
}

// Must ends the test if there is an error.
func (m *Machines) Must(err error) {
	m.T.Helper()
	if err != nil {
		m.T.Fatal(err)
	}
}

// Hash is a lock as a server stores it: its holder and its hold count.
func (m *Machines) Hash(i int, name string) map[string]string {
	m.T.Helper()
	hash, err := m.Servers[i].Client().HGetAll(m.T.Context(), name).Result()
	m.Must(err)
	return hash
}

// Record is what a server has on record.
func (m *Machines) Record(i int) map[string]string { return m.Hash(i, script.RecordKey) }

// Left are the keys on all servers that are no fence and no revocation.
func (m *Machines) Left() []string {
	m.T.Helper()
	var left []string
	for _, s := range m.Servers {
		keys, err := s.Client().Keys(m.T.Context(), "*").Result()
		m.Must(err)
		for _, key := range keys {
			if !strings.HasPrefix(key, "redquorum_fence:") && !strings.HasPrefix(key, "redquorum_revoked:") &&
				key != script.RecordKey {
				left = append(left, s.Addr()+" "+key)
			}
		}
	}
	return left
}

// Clean waits until nothing is left on any server.
func (m *Machines) Clean(within time.Duration) {
	m.T.Helper()
	var left []string
	if !Comes(within, func() bool { left = m.Left(); return len(left) == 0 }) {
		m.T.Fatalf("not clean within %v: %d keys: %.10q", within, len(left), left)
	}
}

// Patience is how long a test waits for what is certain to come. It only tells a failure from a slow machine.
const Patience = 20 * time.Second

// Comes waits until the condition holds, and tells whether it does. It is asked for once more when the time is over:
// what counts is when it was asked for, and not when the answer came.
func Comes(within time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(within); ; time.Sleep(2 * time.Millisecond) {
		late := time.Now().After(deadline)
		if condition() {
			return true
		}
		if late {
			return false
		}
	}
}

// Journal collects log lines.
type Journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// Count is how often a text was logged.
func (j *Journal) Count(text string) int { return strings.Count(j.String(), text) }
