//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// site is a cluster that the commands are told of, and a client of it. Without nodes they go by their environment.
type site struct {
	t *testing.T
	*quorum.Coordinator
	nodes *embedded.Cluster
}

func newSite(t *testing.T) *site {
	t.Helper()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	c, err := quorum.Open(quorum.Config{TTL: time.Minute}, nodes.URLs()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &site{t, c, nodes}
}

// hold takes a lock for the length of the test.
func (s *site) hold(name string) *quorum.Lease {
	s.t.Helper()
	l, err := s.Acquire(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// at has a command line name the nodes, unless it names some itself.
func (s *site) at(args ...string) []string {
	if s.nodes == nil || slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--nodes") }) {
		return args
	}
	return slices.Insert(slices.Clone(args), 1, "--nodes", strings.Join(s.nodes.URLs(), ","))
}

// do runs a command line to its end.
func (s *site) do(args ...string) (status int, out, complaints string) {
	s.t.Helper()
	var stdout, stderr screen // what the command says and what the library warns of
	status = execute(s.t.Context(), s.at(args...), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// take takes a lock away from its holder, however long that takes.
func (s *site) take(name string) {
	s.t.Helper()
	eventually(s.t, "it is taken away", func() bool {
		_, err := s.ForceRelease(s.t.Context(), name)
		return err == nil
	})
}

// free checks that nobody has a lock.
func (s *site) free(name string) {
	s.t.Helper()
	l, err := s.TryAcquire(s.t.Context(), name)
	if err != nil {
		s.t.Fatalf("it was not given back: %v", err)
	}
	if err := l.Release(s.t.Context()); err != nil {
		s.t.Error(err)
	}
}

func TestRunHoldsTheLockAndHasTheStatusOfTheCommand(t *testing.T) {
	s := newSite(t)
	before := s.hold("stock").Token()
	if held, err := s.ForceRelease(t.Context(), "stock"); !held || err != nil {
		t.Fatal(held, err)
	}
	status, out, complaints := s.do("run", "stock", "--", "sh", "-c", `echo "$REDQUORUM_NAME $REDQUORUM_TOKEN"; exit 7`)
	if status != 7 || complaints != "" {
		t.Fatalf("exit status %d: %s", status, complaints)
	}
	name, token, _ := strings.Cut(strings.TrimSpace(out), " ")
	if n, err := strconv.ParseInt(token, 10, 64); name != "stock" || err != nil || n <= before {
		t.Errorf("the command was told %q, and the last token was %d", out, before)
	}
	s.free("stock")
	if status, _, complaints := s.do("run", "stock", "--", "true"); status != 0 || complaints != "" {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	if status, _, _ := s.do("run", "stock", "--", "sh", "-c", "kill -9 $$"); status != 128+9 {
		t.Errorf("exit status %d of a command that was killed", status)
	}
	s.free("stock")
}

// Of what was not run nothing was done, and the status tells why.
func TestRunThatDoesNotRunSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.hold("held")
	marker := filepath.Join(t.TempDir(), "ran")
	const gone = "--nodes=redis://127.0.0.1:1"
	wrong := "--nodes=" + strings.ReplaceAll(strings.Join(s.nodes.URLs(), ","), "redis://", "redis://app:wrong@")
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{notAcquired, "\"held\" is held by ", []string{"--try", "held", "--", "touch", marker}},
		{notRun, "no quorum", []string{wrong, "free", "--", "touch", marker}},
		{notAcquired, "held by", []string{"--wait", "50ms", "held", "--", "touch", marker}},
		{noQuorum, "no quorum", []string{gone, "--try", "free", "--", "touch", marker}},
		{noQuorum, "no quorum", []string{gone, "--wait", "0s", "free", "--", "touch", marker}},
		{noQuorum, "connection refused", []string{gone, "--wait", "1200ms", "free", "--", "touch", marker}},
		{127, "cannot be started", []string{"free", "--", filepath.Join(t.TempDir(), "nothing")}},
		{126, "cannot be started", []string{"free", "--", t.TempDir()}},
		{notRun, "NAME -- COMMAND", []string{"free", "touch", marker}},
		{notRun, "NAME -- COMMAND", []string{"free", "--"}},
		{notRun, "NAME -- COMMAND", []string{"--", "touch", marker}},
		{notRun, "from 0s", []string{"--wait", "-1s", "free", "--", "touch", marker}},
		{notRun, "want one of them", []string{"--wait", "1s", "--try", "free", "--", "touch", marker}},
		{notRun, "names no node", []string{"--nodes=", "free", "--", "touch", marker}},
		{notRun, "empty", []string{"", "--", "touch", marker}},
	} {
		status, out, complaints := s.do(append([]string{"run"}, c.args...)...)
		if status != c.status || !strings.Contains(complaints, c.says) || out != "" {
			t.Errorf("%q: exit status %d, want %d; says %q, want %q", c.args, status, c.status, complaints, c.says)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a command was run")
	}
	s.free("free")
}

// hasEnded waits until a process runs no more. One that only waits for its parent to look has ended.
func hasEnded(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || bytes.Contains(text, []byte(") Z "))
	})
}

// written waits until a file has a number in it.
func written(t *testing.T, file string) (n int) {
	t.Helper()
	eventually(t, "a number is written", func() bool {
		text, _ := os.ReadFile(file)
		number, whole := strings.CutSuffix(string(text), "\n")
		var err error
		n, err = strconv.Atoi(number)
		return whole && err == nil
	})
	return n
}

// The lock is lost in the middle. The command ends, and so does what it has started, whether it wants to or not.
func TestRunEndsTheCommandWhenTheLockIsLost(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct{ script, grace string }{
		"it ends when it is told":      {`sleep 600 & echo $! > $0; wait`, "1h"},
		"it ends and leaves something": {`sh -c 'trap "" TERM; echo $$ > '$0'; while :; do sleep 1; done' & wait`, "1h"},
		"it does not want to end":      {`trap "" TERM; echo $$ > $0; while :; do sleep 1; done`, "200ms"},
		"it is stopped":                {`echo $$ > $0; kill -STOP $$`, "1h"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			file := filepath.Join(t.TempDir(), "pid")
			ended := make(chan string, 1)
			go func() {
				status, _, complaints := s.do("run", "--ttl", "1s", "--grace", c.grace, "stock", "--", "sh", "-c", c.script, file)
				ended <- fmt.Sprint(status, " ", complaints)
			}()
			pid := written(t, file)
			s.take("stock")
			if said := <-ended; !strings.HasPrefix(said, "121 ") || !strings.Contains(said, "was lost") {
				t.Errorf("exit status %s", said)
			}
			hasEnded(t, pid)
			s.free("stock")
		})
	}
}

// The command ends before a renewal is due that would show the loss. The nodes know better.
func TestRunNoticesALossThatCameLate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "pid")
	ended := make(chan string, 1)
	go func() {
		status, _, complaints := s.do("run", "stock", "--", "sh", "-c", `echo $$ > $0; while [ ! -e $0.go ]; do sleep 0.02; done; exit 3`, file)
		ended <- fmt.Sprint(status, " ", complaints)
	}()
	written(t, file)
	s.take("stock")
	if err := os.WriteFile(file+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := <-ended; !strings.HasPrefix(said, "121 ") || !strings.Contains(said, "was lost") || !strings.Contains(said, "status 3") {
		t.Errorf("exit status %s", said)
	}
	s.free("stock")
}

// start starts redquorum run as a process of its own.
func (s *site) start(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], s.at(append([]string{"run"}, args...)...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() }) // for a test that failed
	return cmd
}

// listenedTo waits until somebody waits for a lock.
func (s *site) listenedTo(name string) {
	s.t.Helper()
	opts, err := redis.ParseURL(s.nodes.URLs()[0])
	if err != nil {
		s.t.Fatal(err)
	}
	c := redis.NewClient(opts)
	defer c.Close()
	channel := script.Channel(name)
	eventually(s.t, "somebody waits", func() bool {
		return c.PubSubNumSub(s.t.Context(), channel).Val()[channel] > 0
	})
}

func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "pid")
	cmd := s.start("stock", "--", "sh", "-c", `trap "exit 42" USR1; echo $$ > $0; while :; do sleep 0.05; done`, file)
	pid := written(t, file)
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 42 {
		t.Errorf("exit status %d", code)
	}
	hasEnded(t, pid)
	s.free("stock")
}

// That the window has another size, or that it goes on after a stop, ends nobody who does not care.
func TestRunGoesOnWaitingAfterSignalsThatEndNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := s.hold("stock")
	cmd := s.start("stock", "--", "true")
	s.listenedTo("stock")
	for _, signal := range []syscall.Signal{syscall.SIGWINCH, syscall.SIGCONT} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A signal while it waits ends it, and leaves nothing.
func TestRunThatWaitsIsEndedByASignal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := s.hold("stock")
	marker := filepath.Join(t.TempDir(), "ran")
	cmd := s.start("stock", "--", "touch", marker)
	s.listenedTo("stock")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+15 {
		t.Errorf("exit status %d", code)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	s.free("stock")
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command was run")
	}
}
