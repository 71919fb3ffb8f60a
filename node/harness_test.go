package node_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// No test may make go-redis say anything on standard error, whatever happens to the servers.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // by default: they wait more than they work
	redis.SetLogger(&said)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if lines := said.all(); len(lines) > 0 && code == 0 {
			fmt.Fprintf(os.Stderr, "go-redis would have printed:\n%s\n", strings.Join(lines, "\n"))
			code = 1
		}
		os.Exit(code)
	}))
}

var said journal

// journal takes what go-redis prints.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Printf(_ context.Context, format string, v ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, v...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines
}

const (
	ttl      = 30 * time.Second
	patience = 10 * time.Second
	budget   = 200 * time.Millisecond // of requests that are meant to fail
)

// lock is an acquire of a free lock.
func lock(name string) script.Acquire {
	return script.Acquire{Name: name, Holder: "me:1", Count: 1, TTL: ttl, Proposal: 1, Clamp: time.Second}
}

func unlock(name string) script.Release {
	return script.Release{Name: name, Holder: "me:1", Payload: script.Free, TTL: ttl}
}

// opened returns a node that is closed at the end of the test.
func opened(t testing.TB, n *node.Node, err error) *node.Node {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("closing %s: %v", n.Name(), err)
		}
	})
	return n
}

func open(t testing.TB, url string, options ...node.Option) *node.Node {
	t.Helper()
	n, err := node.Open(url, options...)
	return opened(t, n, err)
}

func with(t testing.TB, opts *redis.Options) *node.Node {
	t.Helper()
	n, err := node.New(opts)
	return opened(t, n, err)
}

// ask runs a request within d; the request expires when its time is up.
func ask(n *node.Node, req script.Request, d time.Duration) (script.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return n.Run(ctx, req, n.Clock().Now().Add(d))
}

// must runs a request that has to work.
func must(t testing.TB, n *node.Node, req script.Request, want script.Status) {
	t.Helper()
	got, err := ask(n, req, patience)
	if err != nil || got.Status != want {
		t.Fatalf("%s: %+v, %v, want %s", req.Script().Name, got, err, want)
	}
}

// eventually waits for a condition that takes its time.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// verdict is what the error of a request has to say.
type verdict struct{ sent, refused, permanent, timeout bool }

func wantError(t testing.TB, err error, want verdict) {
	t.Helper()
	got := verdict{node.Sent(err), node.Refused(err), node.Permanent(err), errors.Is(err, node.ErrTimeout)}
	var whole *node.Error
	switch {
	case !errors.As(err, &whole):
		t.Errorf("got %v, want a *node.Error", err)
	case got != want:
		t.Errorf("%v: got %+v, want %+v", err, got, want)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		t.Errorf("%v matches a context's error", err)
	case whole.Sent != (whole.Last != 0) && !whole.Refused:
		t.Errorf("%v: sent %v, and its last moment is %d", err, whole.Sent, whole.Last)
	case !strings.HasPrefix(err.Error(), whole.Node+": "):
		t.Errorf("%v does not begin with its node", err)
	}
}

// fake is a server on a loopback port that speaks as much of the protocol as a test tells it to.
type fake struct {
	net.Listener
	group sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	calls []string
	talks [][]string // what arrived, connection by connection: see word
}

// hang, as an answer, is none.
const hang = "hang"

// hangUp, as an answer, ends the connection.
const hangUp = "hang up"

// serve starts a fake that answers each command with what answer returns: a reply as it goes over the wire, hang or
// hangUp. "" means the usual: HELLO is unknown, TIME is told.
func serve(t testing.TB, answer func(command []string) string) *fake {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{Listener: l}
	t.Cleanup(f.stop)
	f.group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			number := len(f.conns)
			f.conns, f.talks = append(f.conns, conn), append(f.talks, nil)
			f.mu.Unlock()
			f.group.Go(func() { f.talk(conn, number, answer) })
		}
	})
	return f
}

func (f *fake) stop() {
	_ = f.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.group.Wait()
}

func (f *fake) url() string { return "redis://" + f.Addr().String() }

// heard are the names of the commands that arrived.
func (f *fake) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// count is how often a command arrived.
func (f *fake) count(command string) (n int) {
	for _, c := range f.heard() {
		if c == command {
			n++
		}
	}
	return n
}

func (f *fake) talk(conn net.Conn, number int, answer func([]string) string) {
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.calls = append(f.calls, strings.ToUpper(command[0]))
		f.talks[number] = append(f.talks[number], word(command))
		f.mu.Unlock()
		reply := answer(command)
		if reply == "" {
			switch strings.ToUpper(command[0]) {
			case "TIME":
				reply = timeReply(time.Now())
			default:
				reply = "-ERR unknown command '" + command[0] + "'\r\n"
			}
		}
		switch reply {
		case hang:
			continue
		case hangUp:
			_ = conn.Close()
			return
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func timeReply(now time.Time) string {
	s, us := strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000)
	return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(s), s, len(us), us)
}

// readCommand reads an array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readCount(r)
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := readCount(r)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

func readCount(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// on answers one command, and the others as usual.
func on(command, reply string) func([]string) string {
	return func(c []string) string {
		if strings.EqualFold(c[0], command) {
			return reply
		}
		return ""
	}
}

// granted is an answer to an acquire.
func granted() string {
	return fmt.Sprintf("*6\r\n$7\r\ngranted\r\n:1\r\n:30000\r\n$4\r\nme:1\r\n:1\r\n:%d\r\n", time.Now().UnixMicro())
}
