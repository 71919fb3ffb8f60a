//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// screen takes what several write at once, and can be read meanwhile.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits until a text is on the screen.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the screen shows %q", text), func() bool { return strings.Contains(s.String(), text) })
}

// startSeen starts redquorum run as a process of its own, and returns its standard output and error.
func startSeen(t *testing.T, args ...string) (cmd *exec.Cmd, out, complaints *screen) {
	t.Helper()
	out, complaints = &screen{}, &screen{}
	cmd = exec.Command(os.Args[0], append([]string{"run"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // for a test that failed
	return cmd, out, complaints
}

// Who waits for ever is told for what, and when that is something else.
func TestRunSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := s.hold("stock")
	cmd, out, complaints := startSeen(t, "--nodes", strings.Join(s.nodes.URLs(), ","), "stock", "--", "echo", "at work")
	// On two nodes or all three: an attempt is decided by the answers of two.
	complaints.shows(t, fmt.Sprintf("redquorum: waiting for \"stock\": it is held by %s on ", l.Holder()))
	for i := range 2 {
		if err := s.nodes.Stop(i); err != nil {
			t.Fatal(err)
		}
	}
	complaints.shows(t, "redquorum: waiting for \"stock\": no quorum of nodes (0 of 3 votes, need 2): ")
	if !strings.Contains(complaints.String(), "connection refused") {
		t.Errorf("it does not say why:\n%s", complaints)
	}
	for i := range 2 {
		if err := s.nodes.Restart(i, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "at work\n" {
		t.Errorf("%v, and printed %q", err, out)
	}
	if n := strings.Count(complaints.String(), "waiting for"); n > 4 {
		t.Errorf("got\n%s", complaints)
	}
}

// It says nothing for a second, then what it is, and the same again never. What changes all the time is said ever more rarely.
func TestWaitingIsToldWhenItChanges(t *testing.T) {
	s := newSite(t)
	held := func() error {
		t.Helper()
		_, err := s.TryAcquire(t.Context(), "stock")
		return err
	}
	first := s.hold("stock")
	byFirst := held()
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// It is given back once a quorum of nodes says so. The last one would still tell the next in turn of the first.
	eventually(t, "it is free on every node", func() bool {
		state, err := s.Inspect(t.Context(), "stock")
		return err == nil && !slices.ContainsFunc(state.Nodes, func(n quorum.NodeState) bool { return n.Holder != "" })
	})
	second := s.hold("stock")
	bySecond := held()
	for i := range 2 {
		if err := s.nodes.Stop(i); err != nil {
			t.Fatal(err)
		}
	}
	nobody := held()
	if !errors.Is(byFirst, quorum.ErrNotAcquired) || !errors.Is(bySecond, quorum.ErrNotAcquired) || !errors.Is(nobody, quorum.ErrNoQuorum) {
		t.Fatal(byFirst, bySecond, nobody)
	}
	synctest.Test(t, func(t *testing.T) {
		w := &waiting{name: "stock"}
		begun := time.Now()
		var said []string
		ctx, cancel := context.WithCancel(t.Context())
		var over sync.WaitGroup
		over.Go(func() {
			w.tell(ctx, func(text string) {
				text, _, _ = strings.Cut(text, " on ")
				text, _, _ = strings.Cut(text, " (")
				said = append(said, fmt.Sprintf("%v %s", time.Since(begun), strings.TrimPrefix(text, `waiting for "stock": `)))
			})
		})
		finds := func(err error, d time.Duration) {
			w.TraceAttempt(ctx, quorum.TraceAttemptData{Err: err})
			time.Sleep(d)
		}
		time.Sleep(1500 * time.Millisecond)
		finds(byFirst, 5*time.Second)
		finds(byFirst, 5*time.Second)
		finds(nobody, 4*time.Second)
		for range 200 {
			finds(bySecond, 7*time.Second)
			finds(byFirst, 5*time.Second)
		}
		cancel()
		over.Wait()
		want := []string{
			"1s too few nodes have answered yet",
			"3s it is held by " + first.Holder(),
			"15s no quorum of nodes",
		}
		if len(said) < 4 || !slices.Equal(said[:3], want) || len(said) > 60 {
			t.Errorf("said %d times: %q\nwant %q", len(said), said[:min(len(said), 8)], want)
		}
		if !slices.ContainsFunc(said, func(text string) bool { return strings.HasSuffix(text, second.Holder()) }) {
			t.Errorf("of another holder nothing was said: %q", said)
		}
	})
}

// A lock that is had at once is had without a word.
func TestWaitingSaysNothingWhileItIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), firstWord-1)
		defer cancel()
		(&waiting{name: "stock"}).tell(ctx, func(text string) { t.Error(text) })
	})
}

// The standard output is the command's, whatever there is to say.
func TestRunWarnsOfWhatIsWrongWithTheNodes(t *testing.T) {
	s := newSite(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.nodes.Stop(2); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "stock", "--", "echo", "at work"}, {"ls", "--json"}, {"inspect", "--json", "stock"}} {
		s.tell(1, "HSET", script.RecordKey, "nodes", 5)
		status, out, complaints := s.do(args...)
		if status != exact || !strings.Contains(complaints, "redquorum: clients are configured with different numbers of nodes") ||
			!strings.Contains(complaints, "ours 3, theirs 5") {
			t.Errorf("%q: exit status %d, said\n%s", args, status, complaints)
		}
		away := "redquorum: a node does not answer (node " + strings.TrimPrefix(s.nodes.URLs()[2], "redis://") + "): "
		if run := args[0] == "run"; run != (out == "at work\n") || run != strings.Contains(complaints, away) {
			t.Errorf("%q: printed %q, said\n%s", args, out, complaints)
		}
	}
}

// A password on a command line is everybody's. The warning does not show it.
func TestPasswordOnTheCommandLineIsWarnedOf(t *testing.T) {
	const warning = "there is a password behind --nodes"
	for _, address := range []string{"redis://u:s3cret@127.0.0.1:1", "rediss://:s3cret@127.0.0.1:1", "redis+sentinel://127.0.0.1:1/m?sentinel_password=s3cret", "redis://u:s3cret@h:port"} {
		for _, command := range []string{"run stock -- true", "ls", "inspect stock", "doctor", "release --force --yes stock", "demo"} {
			var complaints screen
			name, rest, _ := strings.Cut(command, " ")
			args := append([]string{name, "--nodes", address}, strings.Fields(rest)...)
			if name == "run" {
				args = slices.Insert(args, 1, "--try")
			}
			ctx, cancel := context.WithCancel(t.Context())
			if name == "demo" {
				cancel() // it waits for its nodes
			}
			execute(ctx, args, strings.NewReader(""), io.Discard, &complaints)
			cancel()
			if said := complaints.String(); strings.Count(said, warning) != 1 || !strings.Contains(said, "--nodes -") || strings.Contains(said, "s3cret") ||
				(name != "demo") != strings.Contains(said, nodesVariable) {
				t.Errorf("%q: said\n%s", args, said)
			}
		}
	}
	for _, address := range []string{"redis://127.0.0.1:1", "redis://u@127.0.0.1:1", "redis://127.0.0.1:1?cacert=a:b@c"} {
		_, _, complaints := (&site{t: t}).do("ls", "--nodes", address)
		if strings.Contains(complaints, warning) {
			t.Errorf("%s: said\n%s", address, complaints)
		}
	}
	t.Setenv(nodesVariable, "redis://u:s3cret@127.0.0.1:1")
	if _, _, complaints := (&site{t: t}).do("ls"); strings.Contains(complaints, warning) || strings.Contains(complaints, "s3cret") {
		t.Errorf("said\n%s", complaints)
	}
}
