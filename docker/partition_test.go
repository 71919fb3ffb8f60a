package docker_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/docker"
)

// wire is a bare connection to a node, on which one sees what really arrives.
type wire struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

func connect(t testing.TB, c *redis.Client) *wire {
	t.Helper()
	conn, err := net.Dial("tcp4", c.Options().Addr)
	ok(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	w := &wire{t: t, TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
	w.send("PING")
	w.hear("+PONG") // it is connected through, not only accepted
	return w
}

func (w *wire) send(command string) {
	w.t.Helper()
	_, err := io.WriteString(w, command+"\r\n")
	ok(w.t, err)
}

func (w *wire) hear(want string) {
	w.t.Helper()
	ok(w.t, w.SetReadDeadline(time.Now().Add(patience)))
	got, err := w.in.ReadString('\n')
	ok(w.t, err)
	if got = strings.TrimSpace(got); got != want {
		w.t.Fatalf("heard %q, want %q", got, want)
	}
}

// hearNothing waits for a moment in which a working connection would have answered.
func (w *wire) hearNothing() {
	w.t.Helper()
	ok(w.t, w.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	got, err := w.in.ReadString('\n')
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("heard %q and %v, want nothing", got, err)
	}
}

// one starts a node and returns a client that looks at it before and after.
func one(t *testing.T, p docker.Persistence) (*docker.Cluster, *redis.Client) {
	t.Helper()
	cluster := start(t, 1, docker.Options{Persistence: p})
	return cluster, dial(t, cluster.URLs()[0])
}

func count(t testing.TB, c *redis.Client, key string) int64 {
	t.Helper()
	n, err := c.Exists(t.Context(), key).Result()
	ok(t, err)
	return n
}

func TestPartitionHangsConnectionsAndHealDelivers(t *testing.T) {
	t.Parallel()
	cluster, node := one(t, docker.None)
	w := connect(t, node)
	ok(t, cluster.Partition(0))
	w.send("INCR n")
	w.hearNothing()
	w.send("INCR n")
	fresh, err := net.Dial("tcp4", node.Options().Addr)
	ok(t, err)
	defer fresh.Close()
	hangs(t, node)
	ok(t, cluster.Heal(0))
	w.hear(":1")
	w.hear(":2")
	ok(t, node.Ping(t.Context()).Err())
}

func TestCutRepliesLetsRequestsThrough(t *testing.T) {
	t.Parallel()
	cluster, node := one(t, docker.None)
	asker, watcher := connect(t, node), connect(t, node)
	watcher.send("SUBSCRIBE news")
	for _, line := range []string{"*3", "$9", "subscribe", "$4", "news", ":1"} {
		watcher.hear(line)
	}
	ok(t, cluster.CutReplies(0))
	asker.send("SET there 1")
	asker.hearNothing()
	// Now the other way: the request hangs, what was withheld arrives.
	ok(t, cluster.CutRequests(0))
	asker.hear("+OK")
	asker.send("PUBLISH news x")
	asker.hearNothing()
	watcher.hearNothing()
	ok(t, cluster.Heal(0))
	asker.hear(":1")
	watcher.hear("*3")
	if count(t, node, "there") != 1 {
		t.Error("a request did not arrive although only replies were cut")
	}
}

// A kernel sends again what was not acknowledged, also when the connection was
// closed in the meantime; not when it was reset.
func TestHealDeliversTheClosedButNotTheReset(t *testing.T) {
	t.Parallel()
	cluster, node := one(t, docker.None)
	closed, aborted := connect(t, node), connect(t, node)
	ok(t, cluster.Partition(0))
	closed.send("SET closed 1")
	aborted.send("SET aborted 1")
	ok(t, closed.Close())
	ok(t, aborted.SetLinger(0))
	ok(t, aborted.Close())
	ok(t, cluster.Heal(0))
	eventually(t, "the late request of the closed connection", func() bool { return count(t, node, "closed") == 1 })
	if count(t, node, "aborted") != 0 {
		t.Error("the request of a connection that was reset arrived")
	}
	eventually(t, "the end of both connections at the node", func() bool {
		list, err := node.ClientList(t.Context()).Result()
		ok(t, err)
		return strings.Count(list, "\n") == 1 // the one that asks
	})
}

func TestPartitionHidesDeathAndRestart(t *testing.T) {
	t.Parallel()
	cluster, node := one(t, docker.Always)
	w := connect(t, node)
	ok(t, cluster.Partition(0))
	w.send("SET key 1")
	ok(t, cluster.Kill(0))
	w.hearNothing()
	hangs(t, node)
	ok(t, cluster.Restart(0, true))
	w.hearNothing()
	ok(t, cluster.Heal(0))
	ok(t, w.SetReadDeadline(time.Now().Add(patience)))
	if _, err := w.in.ReadByte(); err == nil {
		t.Error("the connection outlived the server that it led to")
	}
	eventually(t, "an answer", func() bool { return node.Ping(t.Context()).Err() == nil })
	if count(t, node, "key") != 0 {
		t.Error("a request reached a server that was started after it")
	}
}
