//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestInspectShowsEveryNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if status, out, _ := s.do("inspect", "stock"); status != exact || !strings.Contains(out, `"stock" is free.`) {
		t.Errorf("exit status %d: %s", status, out)
	}
	l := s.hold("stock")
	eventually(t, "on all nodes", func() bool {
		_, out, _ := s.do("inspect", "stock")
		return strings.Count(out, l.Holder()) == 4
	})
	_, out, _ := s.do("inspect", "stock")
	for _, want := range []string{"NODE", "HOLDER", strconv.FormatInt(l.Token(), 10), `"stock" is held by ` + l.Holder()} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	// A node that does not answer is no reason to fail; two are.
	for i := range 2 {
		if err := s.nodes.Stop(i); err != nil {
			t.Fatal(err)
		}
		status, out, complaints := s.do("inspect", "stock")
		if want := []int{exact, failed}[i]; status != want || strings.Count(out, "connection refused") != i+1 {
			t.Errorf("%d nodes down: exit status %d, want %d:\n%s%s", i+1, status, want, out, complaints)
		}
		if says := `inspect "stock": no quorum of nodes: 1 of 3 answered, need 2: 127.0.0.1:`; i == 1 && !strings.Contains(complaints, says) || strings.Contains(complaints, "granted") {
			t.Errorf("%d nodes down: %s", i+1, complaints)
		}
	}
}

func TestInspectForMachines(t *testing.T) {
	s := newSite(t)
	l := s.hold("stock")
	status, out, complaints := s.do("inspect", "--json", "stock")
	var state struct {
		Name, Verdict, Holder string
		TTL                   int64 `json:"ttl_ms"`
		Token                 int64
		Nodes                 []struct {
			Node   string
			Held   bool
			Holder string
			TTL    int64 `json:"ttl_ms"`
		}
	}
	if err := json.Unmarshal([]byte(out), &state); err != nil || status != exact {
		t.Fatalf("exit status %d, %v: %s%s", status, err, out, complaints)
	}
	if state.Name != "stock" || state.Verdict != "held" || state.Holder != l.Holder() || state.Token != l.Token() ||
		state.TTL <= 0 || state.TTL > time.Minute.Milliseconds() || len(state.Nodes) != 3 {
		t.Errorf("got %s", out)
	}
}

// It goes on looking until it is interrupted, which is no failure.
func TestInspectWatches(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--watch stock", "stock --watch=100ms"} {
		t.Run(args, func(t *testing.T) { watches(t, strings.Fields(args)) })
	}
}

// watches checks that a command line shows what becomes of a lock.
func watches(t *testing.T, args []string) {
	t.Parallel()
	s := newSite(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, s.at(append([]string{"inspect", "--json"}, args...)...), nil, in, io.Discard)
		_ = in.Close()
	}()
	lines := json.NewDecoder(out)
	see := func(verdict string) {
		t.Helper()
		for {
			var state struct{ Verdict string }
			if err := lines.Decode(&state); err != nil {
				t.Fatal(err)
			}
			if state.Verdict == verdict {
				return
			}
		}
	}
	see("free")
	l := s.hold("stock")
	see("held")
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	see("free")
	interrupt()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if status := <-ended; status != exact {
		t.Errorf("exit status %d", status)
	}
}

func TestReleaseFreesALockThatIsHeld(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		args, answer string
		status       int
		says         string
		freed        bool
	}{
		{"release stock", "", failed, "--force", false},
		{"release --force stock", "no\n", failed, `"stock" was left alone`, false},
		{"release --force stock", "", failed, `"stock" was left alone`, false},
		{"release --force stock", "yes\n", exact, `"stock" was held and is free now.`, true},
		{"release --force --yes stock", "", exact, `"stock" was held and is free now.`, true},
		{"release --force --nodes - stock", "yes\n", failed, "--yes", false},
	} {
		l := s.hold("stock")
		var out, complaints bytes.Buffer
		status := execute(t.Context(), s.at(strings.Fields(c.args)...), strings.NewReader(c.answer), &out, &complaints)
		if status != c.status || !strings.Contains(out.String()+complaints.String(), c.says) {
			t.Errorf("%s: exit status %d, want %d:\n%s%s", c.args, status, c.status, &out, &complaints)
		}
		if asked := c.answer != "" && !strings.Contains(c.args, " - "); asked && !strings.Contains(out.String(), l.Holder()) {
			t.Errorf("%s: asks without saying who holds it:\n%s", c.args, &out)
		}
		if err := l.Renew(t.Context()); (err != nil) != c.freed {
			t.Errorf("%s: renewed: %v", c.args, err)
		}
		_ = l.Release(t.Context())
	}
	if status, out, _ := s.do("release", "--force", "--yes", "stock"); status != exact || !strings.Contains(out, `"stock" was free.`) {
		t.Errorf("exit status %d: %s", status, out)
	}
}

// Whoever is asked and interrupts has said no.
func TestInterruptedQuestionIsAnsweredNo(t *testing.T) {
	s := newSite(t)
	l := s.hold("stock")
	ctx, interrupt := context.WithCancel(t.Context())
	silent, answer := io.Pipe()
	defer answer.Close()
	out, asked := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		defer asked.Close()
		ended <- execute(ctx, s.at("release", "--force", "stock"), silent, asked, io.Discard)
	}()
	for said := ""; !strings.Contains(said, "Type yes"); {
		part := make([]byte, 256)
		n, err := out.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		said += string(part[:n])
	}
	interrupt()
	_, _ = io.Copy(io.Discard, out)
	if status := <-ended; status != failed {
		t.Errorf("exit status %d", status)
	}
	if err := l.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// config makes a text the file of the user's that names the nodes.
func config(t *testing.T, text string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	folder, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "redquorum"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "redquorum", "nodes"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Where the nodes are, in the order in which it counts.
func TestNodesAreNamedByFlagVariableOrFile(t *testing.T) {
	s := newSite(t)
	urls := strings.Join(s.nodes.URLs(), " ")
	l := s.hold("stock")
	finds := func(how string, stdin string, args ...string) {
		t.Helper()
		var out, complaints bytes.Buffer
		status := execute(t.Context(), append([]string{"inspect"}, args...), strings.NewReader(stdin), &out, &complaints)
		if status != exact || !strings.Contains(out.String(), l.Holder()) {
			t.Errorf("%s: exit status %d:\n%s%s", how, status, &out, &complaints)
		}
	}
	t.Setenv(nodesVariable, strings.ReplaceAll(urls, " ", ","))
	finds("variable", "", "stock")
	t.Setenv(nodesVariable, "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3")
	finds("flag", "", "--nodes", strings.ReplaceAll(urls, " ", ","), "stock")
	finds("standard input", "# ours\n"+strings.ReplaceAll(urls, " ", " # one\n"), "--nodes", "-", "stock")
	if status, _, complaints := (&site{t: t}).do("inspect", "--nodes", "nowhere", "stock"); status != failed || !strings.Contains(complaints, "those of --nodes") {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	t.Setenv(nodesVariable, "")
	config(t, "# ours\n"+strings.ReplaceAll(urls, " ", " # one\n")+"\n")
	finds("file", "", "stock")
	config(t, "# none\n")
	if status, _, complaints := (&site{t: t}).do("inspect", "stock"); status != failed || !strings.Contains(complaints, "names no node") {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if status, _, complaints := (&site{t: t}).do("inspect", "stock"); status != failed || !strings.Contains(complaints, nodesVariable) {
		t.Errorf("exit status %d: %s", status, complaints)
	}
}
