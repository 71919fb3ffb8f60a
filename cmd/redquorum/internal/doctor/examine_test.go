package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// ward is some real servers that clients have used.
type ward struct {
	t       *testing.T
	servers []*redisserver.Server
	urls    []string
}

// admit starts three servers that write everything to disk, so that nothing is to be said of them, and takes them into use.
func admit(t *testing.T, args ...string) *ward {
	t.Helper()
	w := &ward{t: t}
	for range 3 {
		s := redisserver.Start(t, append([]string{"--appendonly", "yes", "--appendfsync", "always"}, args...)...)
		w.servers, w.urls = append(w.servers, s), append(w.urls, s.URL())
	}
	c, err := quorum.Open(quorum.Config{TTL: 10 * time.Second}, w.urls...)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *ward) examine() Report {
	w.t.Helper()
	r, err := Examine(w.t.Context(), Config{URLs: w.urls, NodeTimeout: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// do tells server 1, the patient, something.
func (w *ward) do(args ...any) {
	w.t.Helper()
	if err := w.servers[1].Client().Do(w.t.Context(), args...).Err(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ward) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// keys are what server i has, with what is in its record.
func (w *ward) keys(i int) (keys []string, record map[string]string) {
	w.t.Helper()
	keys, err := w.servers[i].Client().Keys(w.t.Context(), "*").Result()
	w.must(err)
	record, err = w.servers[i].Client().HGetAll(w.t.Context(), script.RecordKey).Result()
	w.must(err)
	return keys, record
}

func TestRealServersInGoodOrder(t *testing.T) {
	w := admit(t)
	_, before := w.keys(0)
	r := w.examine()
	wantNothing(t, r)
	if r.Voting != 3 {
		t.Errorf("%+v", r)
	}
	for i, n := range r.Nodes {
		if n.Node != w.servers[i].Addr() || !n.Answers || !n.Votes || !strings.HasPrefix(n.Version, "Redis ") || n.RoundTrip <= 0 {
			t.Errorf("%+v", n)
		}
		keys, after := w.keys(i)
		if len(keys) != 1 || i == 0 && (after["nodes"] != "3" || after["ttl"] != "10000" || after["incarnation"] != before["incarnation"]) {
			t.Errorf("left behind: %q, and a record of %q", keys, after)
		}
	}
}

// Of a cluster that nobody has used it decides nothing, and tells its clients nothing.
func TestRealNewServersStayNew(t *testing.T) {
	w := &ward{t: t}
	for _, s := range redisserver.StartN(t, 3) {
		w.servers, w.urls = append(w.servers, s), append(w.urls, s.URL())
	}
	for range 2 {
		r, err := Examine(t.Context(), Config{URLs: w.urls, TTL: time.Hour})
		if err != nil || r.Voting != 3 || r.Worst() != Note {
			t.Errorf("%v, %+v", err, r)
		}
		for i := range w.servers {
			if _, record := w.keys(i); record["until"] != "" || record["nodes"] != "0" || record["ttl"] != "0" {
				t.Errorf("server %d has the record %q", i, record)
			}
		}
	}
	c, err := quorum.Open(quorum.Config{}, w.urls...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.TryAcquire(t.Context(), "stock")
	if err != nil {
		t.Fatalf("they are not new any more: %v", err)
	}
	w.must(l.Release(t.Context()))
}

// What only a real server can be, and what is said of it.
func TestRealServerThatIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for title, c := range map[string]struct {
		befalls  func(w *ward)
		severity Severity
		check    string
		words    []string
		votes    bool
	}{
		"killed": {func(w *ward) { w.servers[1].Kill() }, Problem, "reachability",
			[]string{"connection refused", "no server listens"}, false},
		"paused": {func(w *ward) { w.must(w.servers[1].Pause()) }, Problem, "reachability",
			[]string{"no answer within 2s", "stands still"}, false},
		"wants a password": {func(w *ward) { w.do("CONFIG", "SET", "requirepass", "s3cret") }, Problem, "reachability",
			[]string{"NOAUTH", "credentials"}, false},
		"knows another password": {func(w *ward) {
			w.do("CONFIG", "SET", "requirepass", "s3cret")
			w.urls[1] = "redis://:wr0ng-s3cret@" + w.servers[1].Addr()
		}, Problem, "reachability", []string{"WRONGPASS", "credentials"}, false},
		"speaks no TLS": {func(w *ward) { w.urls[1] = "rediss://" + w.servers[1].Addr() }, Problem, "reachability",
			[]string{"no TLS handshake within 2s, and an answer without TLS", "tls-port"}, false},
		"speaks no TLS, and wants a password": {func(w *ward) {
			w.do("CONFIG", "SET", "requirepass", "s3cret")
			w.urls[1] = "rediss://:s3cret@" + w.servers[1].Addr()
		}, Problem, "reachability", []string{"no TLS handshake within 2s, and an answer without TLS", "tls-port"}, false},
		"paused, and should speak TLS": {func(w *ward) {
			w.urls[1] = "rediss://" + w.servers[1].Addr()
			w.must(w.servers[1].Pause())
		}, Problem, "reachability", []string{"no answer within 2s", "stands still"}, false},
		"a replica": {func(w *ward) {
			master := redisserver.Start(w.t)
			host, port, _ := strings.Cut(master.Addr(), ":")
			w.do("REPLICAOF", host, port)
		}, Problem, "role", []string{"a replica of 127.0.0.1:", "REPLICAOF NO ONE"}, false},
		"watched by a Sentinel": {func(w *ward) {
			watch := w.servers[1].Client().Subscribe(w.t.Context(), "__sentinel__:hello")
			w.t.Cleanup(func() { _ = watch.Close() })
			_, err := watch.Receive(w.t.Context())
			w.must(err)
		}, Problem, "role", []string{"Sentinel", "min-replicas-to-write 1"}, false},
		"may evict": {func(w *ward) {
			w.do("CONFIG", "SET", "maxmemory", "100mb")
			w.do("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
		}, Warning, "memory", []string{"100.00M", "volatile-ttl", "noeviction"}, true},
		"full": {func(w *ward) { w.do("CONFIG", "SET", "maxmemory", "1000") }, Problem, "commands",
			[]string{"OOM", "memory is full"}, false},
		"without its replicas": {func(w *ward) { w.do("CONFIG", "SET", "min-replicas-to-write", "1") }, Problem, "commands",
			[]string{"NOREPLICAS", "Too few replicas"}, false},
		"snapshots only": {func(w *ward) {
			w.do("CONFIG", "SET", "appendonly", "no")
			w.do("CONFIG", "SET", "save", "900 1")
		}, Note, "persistence", []string{"snapshots only (save 900 1)"}, true},
		"restarted with old data": {func(w *ward) {
			w.do("CONFIG", "SET", "appendfsync", "no") // not on record any more as one that writes everything
			w.do("HSET", script.RecordKey, "durable", "no")
			w.must(w.servers[1].Restart())
		}, Warning, "restart guard", []string{"in quarantine, for 10s"}, false},
		"flushed": {func(w *ward) { w.do("FLUSHALL") }, Warning, "restart guard", []string{"no record", "30s"}, false},
		"of a larger cluster": {func(w *ward) { w.do("HSET", script.RecordKey, "nodes", 5) }, Warning, "restart guard",
			[]string{"5 nodes", "these are 3"}, true},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := admit(t)
			c.befalls(w)
			r := w.examine()
			wantOne(t, r, c.severity, c.check, w.servers[1].Addr(), c.words...)
			want := 2
			if c.votes {
				want = 3
			}
			if r.Voting != want || r.Nodes[1].Votes != c.votes {
				t.Errorf("votes %v, and %d do", r.Nodes[1].Votes, r.Voting)
			}
			if text := written(t, r); strings.Contains(text, "s3cret") {
				t.Errorf("a password is told:\n%s", text)
			}
		})
	}
}

// written is everything that a report says, to people and machines.
func written(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRealServerUnderTwoAddresses(t *testing.T) {
	dir, err := os.MkdirTemp("", "redquorum") // a socket's path may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	w := &ward{t: t}
	one, other := redisserver.Start(t, "--unixsocket", socket), redisserver.Start(t)
	w.urls = []string{one.URL(), other.URL(), "unix://" + socket}
	found := w.examine().of("servers")
	if len(found) != 1 || found[0].Severity != Problem || strings.Join(found[0].Nodes, " ") != one.Addr()+" "+socket {
		t.Errorf("got %+v", found)
	}
}

// Nodes that are no servers of Redis' own tell less of themselves, and locks work all the same.
func TestEmbeddedNodes(t *testing.T) {
	t.Parallel()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	cfg := Config{URLs: nodes.URLs()}
	r, err := Examine(t.Context(), cfg)
	if err != nil || r.Voting != 3 || r.Worst() != Note || len(r.advice()) != 3 {
		t.Errorf("%v, %+v", err, r.advice())
	}
	nodes.Stop(0)
	nodes.Hang(1)
	r, err = Examine(t.Context(), cfg)
	if err != nil || r.Worst() != Problem || r.Voting != 0 || r.Nodes[0].Answers || r.Nodes[1].Answers || !r.Nodes[2].Answers {
		t.Errorf("%v, %+v", err, r)
	}
}

// What is at an address may be anything.
func TestWhatIsNoRedis(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	defer stranger.Close()
	rude, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := rude.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	})
	defer conns.Wait()
	defer rude.Close()
	for want, url := range map[string]string{
		"is not one that this machine trusts": "rediss://" + stranger.Listener.Addr().String(),
		"It hung up":                          "redis://" + rude.Addr().String(),
	} {
		r, err := Examine(t.Context(), Config{URLs: []string{url}})
		if err != nil {
			t.Fatal(err)
		}
		if f := r.of("reachability"); len(f) != 1 || f[0].Severity != Problem || !strings.Contains(f[0].Means, want) {
			t.Errorf("%s: %+v", url, f)
		}
	}
}

func TestWhatIsNoSetOfNodesIsRefused(t *testing.T) {
	for want, urls := range map[string][]string{
		"no nodes":     nil,
		"same address": {"redis://127.0.0.1:1", "redis://localhost:1"},
		`"http"`:       {"http://u:s3cret@h"},
		"node 2 of 2":  {"redis://127.0.0.1:1", "redis://u:s3cret@h:port"},
	} {
		_, err := Examine(t.Context(), Config{URLs: urls})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestExaminationEndsWithItsContext(t *testing.T) {
	nodes, err := embedded.Start(1)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	nodes.Hang(0)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("that is enough"))
	defer cancel()
	begun := time.Now()
	if _, err := Examine(ctx, Config{URLs: nodes.URLs()}); err == nil || !strings.Contains(err.Error(), "that is enough") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took >= patience {
		t.Errorf("it took %v", took)
	}
}
