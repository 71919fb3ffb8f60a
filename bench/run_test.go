package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/report"
	"github.com/redquorum/redquorum/bench/internal/scenario"
	"github.com/redquorum/redquorum/internal/redisserver"
)

// bench runs it for a moment and returns what it measured.
func bench(t *testing.T, args ...string) report.Report {
	t.Helper()
	return benchFor(t, 40*time.Millisecond, args...)
}

func benchFor(t *testing.T, d time.Duration, args ...string) report.Report {
	t.Helper()
	dir := t.TempDir()
	html, data := filepath.Join(dir, "bench.html"), filepath.Join(dir, "bench.json")
	o, err := parse(append(args, "--quick", "--duration", d.String(), "--html", html, "--json", data), nil)
	if err != nil {
		t.Fatal(err)
	}
	var table, progress bytes.Buffer
	if err := run(t.Context(), o, &table, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r report.Report
	written, err := os.ReadFile(data)
	if err == nil {
		err = json.Unmarshal(written, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenario.All() {
		if !o.scenario.MatchString(s.Name) {
			continue
		}
		if !strings.Contains(table.String(), s.Title) || !bytes.Contains(page, []byte(s.Title)) {
			t.Errorf("the table or the page lacks %q", s.Title)
		}
	}
	return r
}

// check wants of every measurement that it took place, or says why not.
func check(t *testing.T, r report.Report, embedded bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range r.Measurements {
		seen[m.Scenario] = true
		if m.Nodes == 0 {
			t.Errorf("%s, %s: no nodes", m.Scenario, m.Peer)
		}
		switch {
		case m.Skipped != "":
			// Embedded nodes know no CLIENT TRACKING, without which rueidislock does not start.
			expected := strings.Contains(m.Skipped, "does not renew") || strings.Contains(m.Skipped, "its one server") || embedded && strings.HasPrefix(m.Peer, "rueidislock")
			if !expected {
				t.Errorf("%s, %s: %s", m.Scenario, m.Peer, m.Skipped)
			}
		case m.Peer != "redquorum":
		case m.Overlaps > 0:
			t.Errorf("%s: %d times two holders", m.Scenario, m.Overlaps)
		case m.Held != nil:
			if m.Held.Leases == 0 {
				t.Error("no leases were held")
			}
		case m.Pairs == 0:
			// A busy machine can let that moment pass. With more time only what does not work measures nothing.
			again := benchFor(t, 5*time.Second, "--scenario", "^"+m.Scenario+"$", "--peers", m.Peer)
			if slices.ContainsFunc(again.Measurements, func(m measure.Result) bool { return m.Pairs == 0 }) {
				t.Errorf("%s: nothing was measured", m.Scenario)
			}
		case m.Latency == nil:
			t.Errorf("%s: no latency was measured", m.Scenario)
		case (m.Scenario == "hung" || m.Scenario == "killed") && (m.Timeline == nil || len(m.Timeline.Events) != 2):
			t.Errorf("%s: no timeline of two events", m.Scenario)
		}
	}
	for _, name := range scenario.Names() {
		if !seen[name] {
			t.Errorf("nothing of %s", name)
		}
	}
}

func TestQuickRunOnRealServers(t *testing.T) {
	redisserver.Require(t)
	// The others, with real servers, are .ci/bench's: some take seconds to see that a server is gone.
	check(t, bench(t, "--peers", "redquorum,floor"), false)
}

func TestQuickRunOnEmbeddedNodes(t *testing.T) {
	t.Setenv("REDQUORUM_REDIS_SERVER", "/nonexistent/redis-server")
	r := bench(t, "--peers", "redquorum,rueidislock,floor") // some that work, and one that cannot
	if !strings.Contains(r.Nodes, "embedded") {
		t.Errorf("nodes: %s", r.Nodes)
	}
	check(t, r, true)
}

func TestNamedNodesAreNotStopped(t *testing.T) {
	servers := redisserver.StartN(t, 3)
	r := bench(t, "--nodes", strings.Join(redisserver.URLs(servers), ","), "--scenario", "single|hung|killed", "--peers", "redquorum,floor")
	for _, m := range r.Measurements {
		if failure := m.Scenario != "single"; failure != strings.Contains(m.Skipped, "not ours") {
			t.Errorf("%s, %s: skipped: %q", m.Scenario, m.Peer, m.Skipped)
		}
		if m.Nodes != 3 {
			t.Errorf("%s, %s: %d nodes", m.Scenario, m.Peer, m.Nodes)
		}
	}
	for _, s := range servers {
		if s.PID() == 0 {
			t.Error("a server that is not ours was killed")
		}
	}
}

// interrupter ends the run when it has begun to measure.
type interrupter struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (i *interrupter) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("2/")) {
		i.stop()
	}
	return i.Buffer.Write(b)
}

func TestAnInterruptedRunHandsOutWhatItHas(t *testing.T) {
	o, err := parse([]string{"--quick", "--duration", "40ms", "--html", ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var table bytes.Buffer
	err = run(ctx, o, &table, &interrupter{stop: stop})
	if err == nil || !strings.Contains(err.Error(), "interrupted after 2 of") {
		t.Errorf("%v", err)
	}
	if s := table.String(); !strings.Contains(s, "interrupted") || !strings.Contains(s, "redsync") {
		t.Errorf("the table:\n%s", s)
	}
}
