package doctor

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// What a server on this machine does not do for a test, facts that are made up show: clocks that are off, a network that is
// slow, old versions.

// healthy are n nodes of which nothing is to be said.
func healthy(n int) []facts {
	all := make([]facts, n)
	for i := range all {
		all[i] = facts{
			node:  fmt.Sprintf("10.0.0.%d:6379", i+1),
			trips: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond},
			least: -time.Millisecond, most: time.Millisecond,
			info: map[string]string{
				"run_id": fmt.Sprint("run", i), "redis_version": "7.2.4", "redis_mode": "standalone", "role": "master",
				"maxmemory": "0", "maxmemory_policy": "noeviction",
			},
			settings: map[string]string{"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"},
			recorded: map[string]string{"nodes": fmt.Sprint(n)},
			record:   script.Record{Standing: script.StandingSettled, TTL: 30 * time.Second},
		}
	}
	return all
}

// of are the findings of one check.
func (r Report) of(check string) (found []Finding) {
	for _, f := range r.Findings {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// wantOne checks that a report has exactly one finding that is not OK, which says what it has to.
func wantOne(t *testing.T, r Report, severity Severity, check, node string, words ...string) {
	t.Helper()
	advice := r.advice()
	if len(advice) != 1 {
		t.Errorf("want one finding, %v about %s; got %+v", severity, check, advice)
		return
	}
	f := advice[0]
	text := f.Found + " " + f.Means + " " + f.Fix
	if f.Severity != severity || f.Check != check || strings.Join(f.Nodes, ",") != node {
		t.Errorf("got %v: %s of %q, want %v: %s of %q", f.Severity, f.Check, f.Nodes, severity, check, node)
	}
	if f.Found == "" || f.Means == "" || f.Fix == "" {
		t.Errorf("it does not say all: %+v", f)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in %q", word, text)
		}
	}
}

func wantNothing(t *testing.T, r Report) {
	t.Helper()
	if advice := r.advice(); len(advice) > 0 || r.Worst() != OK {
		t.Errorf("got %+v", advice)
	}
}

func defaults() quorum.Config { return quorum.Config{}.WithDefaults() }

func TestNothingIsSaidOfWhatIsAsItShouldBe(t *testing.T) {
	for _, n := range []int{3, 5, 7} {
		r := judge(defaults(), healthy(n))
		wantNothing(t, r)
		if r.Quorum != n/2+1 || r.Voting != n || len(r.Nodes) != n || r.Nodes[0].Version != "Redis 7.2.4" || r.Nodes[0].RoundTrip != 1 {
			t.Errorf("%+v", r)
		}
		for _, check := range []string{"reachability", "server", "role", "persistence", "memory", "commands", "messages", "restart guard"} {
			if len(r.of(check)) != n {
				t.Errorf("%d findings about %s of %d nodes", len(r.of(check)), check, n)
			}
		}
		for _, check := range []string{"number", "times", "servers", "clocks"} {
			if len(r.of(check)) != 1 {
				t.Errorf("%d findings about %s", len(r.of(check)), check)
			}
		}
	}
}

func TestNumberOfNodes(t *testing.T) {
	for n, words := range map[int][]string{
		1: {"single point of failure"},
		2: {"2 nodes", "none may be down"},
		4: {"of which 1", "A quorum is 3", "no more failures than 3 do"},
		6: {"of which 2", "A quorum is 4"},
	} {
		wantOne(t, judge(defaults(), healthy(n)), Warning, "number", "", words...)
	}
}

func TestTimesThatClientsRefuse(t *testing.T) {
	cfg := quorum.Config{TTL: time.Second, NodeTimeout: 900 * time.Millisecond}.WithDefaults()
	wantOne(t, judge(cfg, healthy(3)), Problem, "times", "", "TTL 1s", "node timeout 900ms", "too small")
}

// What a node said, or who did in its place, is told with what to do about it. Those that a server on this machine can show are
// in examine_test.go.
func TestNodesThatCannotBeTalkedTo(t *testing.T) {
	for _, c := range []struct {
		err   error
		words []string
	}{
		{&net.DNSError{Err: "no such host", Name: "redis.test"}, []string{"redis.test", "name server"}},
		{errors.New("LOADING Redis is loading the dataset in memory"), []string{"LOADING", "reads its data", "Wait."}},
		{syscall.EHOSTUNREACH, []string{"no route", "one node less"}},
	} {
		all := healthy(3)
		all[2] = facts{node: all[2].node, err: &node.Error{Node: all[2].node, Err: c.err}}
		r := judge(defaults(), all)
		wantOne(t, r, Problem, "reachability", all[2].node, c.words...)
		if strings.Contains(r.of("reachability")[2].Found, all[2].node) {
			t.Errorf("the node is named twice: %+v", r.advice())
		}
	}
}

// What matters of a round trip is how it compares with what clients wait.
func TestRoundTripsAgainstTheNodeTimeout(t *testing.T) {
	for ms, severity := range map[[3]int]Severity{
		{1, 2, 249}:      OK,
		{1, 2, 250}:      Warning,
		{249, 251, 499}:  Warning,
		{400, 499, 2000}: Warning,
		{400, 500, 500}:  Problem,
	} {
		all := healthy(3)
		for i := range ms {
			all[1].trips[i] = time.Duration(ms[i]) * time.Millisecond
		}
		r := judge(defaults(), all)
		if severity == OK {
			wantNothing(t, r)
			continue
		}
		wantOne(t, r, severity, "reachability", "10.0.0.2:6379", "500ms", fmt.Sprintf("answers in %dms", ms[1]))
	}
}

func TestServersAndTheirVersions(t *testing.T) {
	for _, c := range []struct {
		info     map[string]string
		severity Severity
		words    []string
	}{
		{map[string]string{"redis_version": "6.2.14"}, Note, []string{"Redis 6.2.14", "older than 7.0"}},
		{map[string]string{"redis_version": "7.0.0"}, OK, nil},
		{map[string]string{"redis_version": "10.1.0"}, OK, nil},
		{map[string]string{"redis_version": "7.2.4", "valkey_version": "8.0.1"}, OK, nil},
		{map[string]string{"redis_mode": "cluster"}, Problem, []string{"cluster mode", "cluster-enabled"}},
		{map[string]string{"redis_mode": "sentinel"}, Problem, []string{"sentinel mode"}},
		{map[string]string{"redis_version": ""}, Note, []string{"does not tell its version"}},
	} {
		all := healthy(3)
		for name, value := range c.info {
			all[0].info[name] = value
		}
		if r := judge(defaults(), all); c.severity == OK {
			wantNothing(t, r)
		} else {
			wantOne(t, r, c.severity, "server", all[0].node, c.words...)
		}
	}
	all := healthy(3)
	all[2].info["valkey_version"] = "8.0.1"
	if got := judge(defaults(), all).Nodes[2].Version; got != "Valkey 8.0.1" {
		t.Errorf("got %q", got)
	}
}

func TestPersistenceSaysWhatARestartMeans(t *testing.T) {
	for found, settings := range map[string]map[string]string{
		"nothing is written to disk":                            {"appendonly": "no", "save": ""},
		"snapshots only (save 3600 1)":                          {"appendonly": "no", "save": "3600 1"},
		"appendonly with appendfsync everysec":                  {"appendonly": "yes", "appendfsync": "everysec", "save": "3600 1"},
		"appendfsync always, but no-appendfsync-on-rewrite yes": {"no-appendfsync-on-rewrite": "yes"},
	} {
		all := healthy(3)
		for name, value := range settings {
			all[1].settings[name] = value
		}
		wantOne(t, judge(defaults(), all), Note, "persistence", all[1].node, found, "does not vote", "a TTL apart")
	}
}

func TestSameServerTwice(t *testing.T) {
	all := healthy(5)
	all[3].info["run_id"] = all[1].info["run_id"]
	wantOne(t, judge(defaults(), all), Problem, "servers", all[1].node+","+all[3].node, "2 addresses lead to one server", "ErrSameServer")

	// Who does not tell is no twin of others that do not, and nobody knows that it is none.
	all = healthy(3)
	all[0].info["run_id"], all[2].info["run_id"] = "", ""
	wantOne(t, judge(defaults(), all), Note, "servers", "", "1 of 3", "ErrSameServer", "INFO server")

	// Of one that is away nothing is known, and that is told elsewhere.
	all = healthy(3)
	all[1] = facts{node: all[1].node, err: quorum.ErrClosed}
	r := judge(defaults(), all)
	if f := r.of("servers"); len(f) != 1 || f[0].Severity != OK || !strings.Contains(f[0].Found, "2 of 3") {
		t.Errorf("got %+v", f)
	}
	all[0] = facts{node: all[0].node, err: quorum.ErrClosed}
	if f := judge(defaults(), all).of("servers"); len(f) != 0 {
		t.Errorf("of one server alone: %+v", f)
	}
}

// Who votes is what a quorum is counted by.
func TestNodesThatDoNotVoteAreNotCounted(t *testing.T) {
	all := healthy(3)
	all[0].record.Quarantine = 12 * time.Second
	r := judge(defaults(), all)
	wantOne(t, r, Warning, "restart guard", all[0].node, "in quarantine, for 12s")
	if r.Voting != 2 || r.Nodes[0].Votes {
		t.Errorf("%+v", r)
	}
	// Without a record among others that have one it has forgotten, or is new, which comes to the same.
	all = healthy(3)
	all[0].record.Standing = script.StandingUnsettled
	r = judge(defaults(), all)
	wantOne(t, r, Warning, "restart guard", all[0].node, "no record", "30s")
	if r.Voting != 2 {
		t.Errorf("%+v", r)
	}
	// Where none has one, all are new.
	for i := range all {
		all[i].record.Standing = script.StandingUnsettled
	}
	r = judge(defaults(), all)
	wantNothing(t, r)
	if r.Voting != 3 {
		t.Errorf("%+v", r)
	}
	// But not where one may know better.
	all[1] = facts{node: all[1].node, err: quorum.ErrClosed}
	if r = judge(defaults(), all); r.Voting != 0 {
		t.Errorf("%+v", r)
	}
}

func TestClientsThatDisagreeOnTheNumberOfNodes(t *testing.T) {
	all := healthy(3)
	all[1].recorded["nodes"] = "5"
	wantOne(t, judge(defaults(), all), Warning, "restart guard", all[1].node, "5 nodes", "these are 3")
	all[1].recorded["nodes"] = "0" // nobody but us
	wantNothing(t, judge(defaults(), all))
}
