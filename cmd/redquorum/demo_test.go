package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/script"
)

// running is the demo as a process of its own, as a user starts it.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *bufio.Scanner
	seen strings.Builder
}

// start starts a small demo; stdin is what it reads, args come after the small size and win over it.
func start(t *testing.T, stdin string, args ...string) *running {
	t.Helper()
	small := []string{"demo", "--stock", "20", "--processes", "3", "--workers", "2", "--ttl", "500ms", "--timeout", "25s"}
	cmd := exec.Command(os.Args[0], append(small, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	// The race detector makes every process that ends wait a second, and these are many, one after the other.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, cmd: cmd, out: bufio.NewScanner(out)}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // for a test that failed
	go func() { _ = in.CloseWithError(cmd.Wait()) }()
	return r
}

// until reads what the demo prints until a line contains text.
func (r *running) until(text string) {
	r.t.Helper()
	for r.out.Scan() {
		r.seen.WriteString(r.out.Text() + "\n")
		if strings.Contains(r.out.Text(), text) {
			return
		}
	}
	r.t.Fatalf("the demo ended (%v) and never said %q:\n%s", r.out.Err(), text, &r.seen)
}

// end waits for the end and checks the exit status.
func (r *running) end(status int) string {
	r.t.Helper()
	for r.out.Scan() {
		r.seen.WriteString(r.out.Text() + "\n")
	}
	got := 0
	var exit *exec.ExitError
	if errors.As(r.out.Err(), &exit) {
		got = exit.ExitCode()
	} else if err := r.out.Err(); err != nil {
		r.t.Fatal(err)
	}
	if got != status {
		r.t.Errorf("exit status %d, want %d:\n%s", got, status, &r.seen)
	}
	return r.seen.String()
}

// expect checks that the output matches each pattern.
func expect(t *testing.T, output string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(output) {
			t.Errorf("nothing matches %q in:\n%s", p, output)
		}
	}
}

// keys are those that locks left.
func keys(t *testing.T, urls []string) (all []string) {
	t.Helper()
	for _, url := range urls {
		opts, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(opts)
		names, err := client.Keys(context.Background(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name != script.RecordKey { // the node's own, which stays with it
				all = append(all, name)
			}
		}
		_ = client.Close()
	}
	return all
}

func TestDemoIsExactOnlyWithTheLock(t *testing.T) {
	t.Parallel()
	out := start(t, "").end(exact)
	expect(t, out,
		`OVERSOLD by [1-9]`,
		`nodes 2 and 4 killed`,
		`node 2 is back, empty`,
		`EXACT: 20 orders for 20 items`,
		`orders +[0-9]+ +20\n`,
		`oversold +[1-9][0-9]* +0\n`,
		`items sold again +[1-9][0-9]* +0\n`,
		`two inside at once +[1-9][0-9]* +0\n`,
		`nodes +not used +2 killed, 1 back empty\n`,
		`no lock left on \d nodes`,
		`VERDICT: with the lock every item was sold exactly once`,
	)
	if strings.Contains(out, "\x1b") {
		t.Errorf("escape sequences although the output is no terminal: %q", out)
	}
}

func TestDemoSaysSoWhenNothingWasOversold(t *testing.T) {
	t.Parallel()
	out := start(t, "", "--processes", "1", "--workers", "1", "--ttl", "200ms").end(exact)
	expect(t, out, `oversold +0 +0\n`, `nothing was oversold this time`, `VERDICT: with the lock`)
}

func TestDemoOnNodesOfYoursSurvivesTheirLoss(t *testing.T) {
	t.Parallel()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	r := start(t, "", "--nodes", strings.Join(nodes.URLs(), ","))
	r.until("the demo kills none of them")
	nodes.Stop(1)
	r.until("node 2 (" + strings.TrimPrefix(nodes.URLs()[1], "redis://") + ") does not answer any more")
	out := r.end(exact)
	// Where the machine is busy the others may seem lost for a moment.
	expect(t, out, `3 nodes of yours`, `EXACT: 20 orders for 20 items`, `(1 lost, 0|2 lost, 1|3 lost, 2) back`)
	if left := keys(t, []string{nodes.URLs()[0], nodes.URLs()[2]}); left != nil {
		t.Errorf("left on the nodes: %q", left)
	}
}

func TestDemoOnRealServersWithPasswords(t *testing.T) {
	redisserver.Require(t)
	t.Parallel()
	servers := redisserver.StartN(t, 5)
	const password = "s3cret"
	var urls []string
	for _, s := range servers {
		if err := s.Client().ConfigSet(t.Context(), "requirepass", password).Err(); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, strings.Replace(s.URL(), "redis://", "redis://:"+password+"@", 1))
	}
	r := start(t, strings.Join(urls, "\n"), "--nodes", "-")
	r.until("the demo kills none of them")
	seeNoPassword(t, r.cmd.Process.Pid, 3, password)
	servers[0].Kill()
	if err := servers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	r.until("(" + servers[0].Addr() + ") does not answer any more")
	if err := servers[1].Resume(); err != nil {
		t.Fatal(err)
	}
	out := r.end(exact)
	expect(t, out, `5 nodes of yours`, `EXACT: 20 orders for 20 items`)
	if strings.Contains(out, password) {
		t.Errorf("the password was printed:\n%s", out)
	}
	if left := keys(t, urls[1:]); left != nil {
		t.Errorf("left on the nodes: %q", left)
	}
}

func TestDemoWithoutAQuorumDoesNotBegin(t *testing.T) {
	t.Parallel()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	nodes.Stop(0)
	nodes.Stop(1)
	out := start(t, "", "--nodes", strings.Join(nodes.URLs(), ",")).end(failed)
	expect(t, out, `not ready for locks: .*1 of 3 votes, need 2`)
}

func TestDemoEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	r := start(t, "", "--ttl", "200ms", "--timeout", "3s", "--nodes", strings.Join(nodes.URLs(), ","))
	r.until("the demo kills none of them")
	for i := range 3 {
		if err := nodes.Hang(i); err != nil {
			t.Fatal(err)
		}
	}
	out := r.end(failed)
	expect(t, out, `no node answers`, `not done within 3s \(--timeout\)`)
}

func TestInterruptLeavesNeitherKeyNorProcess(t *testing.T) {
	t.Parallel()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	r := start(t, "", "--ttl", "1s", "--nodes", strings.Join(nodes.URLs(), ","))
	r.until("the demo kills none of them")
	r.until("orders") // a second into the sale
	workers := children(t, r.cmd.Process.Pid, 3)
	began := time.Now()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	out := r.end(failed)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	expect(t, out, `no lock left on 3 nodes`, `interrupt`)
	gone(t, workers)
	if left := keys(t, nodes.URLs()); left != nil {
		t.Errorf("left on the nodes: %q", left)
	}
}

func TestWorkersEndWithTheirParentAndGiveTheLockBack(t *testing.T) {
	t.Parallel()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	r := start(t, "", "--ttl", "2s", "--nodes", strings.Join(nodes.URLs(), ","))
	r.until("the demo kills none of them")
	r.until("orders")
	workers := children(t, r.cmd.Process.Pid, 3)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, workers)
	for _, key := range keys(t, nodes.URLs()) {
		if !strings.HasPrefix(key, "redquorum_fence:") { // the parent would have removed it
			t.Errorf("left on a node: %q", key)
		}
	}
}
