//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

const someone = "01234567-89ab-cdef-0123-456789abcdef:1"

// put gives one node a lock, or what looks like one.
func (s *site) put(i int, name, field string) {
	s.t.Helper()
	opts, err := redis.ParseURL(s.nodes.URLs()[i])
	if err != nil {
		s.t.Fatal(err)
	}
	c := redis.NewClient(opts)
	defer c.Close()
	if err := c.HSet(s.t.Context(), name, field, 1).Err(); err != nil {
		s.t.Fatal(err)
	}
	if err := c.PExpire(s.t.Context(), name, time.Hour).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// line is the first line with a text.
func line(out, text string) string {
	for l := range strings.Lines(out) {
		if strings.Contains(l, text) {
			return l
		}
	}
	return ""
}

func TestLsShowsWhoHoldsWhatOnHowManyNodes(t *testing.T) {
	s := newSite(t)
	if status, out, complaints := s.do("ls"); status != exact || out != "0 locks match \"*\" on 3 of 3 nodes.\n" || complaints != "" {
		t.Errorf("exit status %d: %q %s", status, out, complaints)
	}
	l, other := s.hold("stock"), s.hold("flour")
	s.put(1, "stock room", someone)
	s.put(2, "stocks", "ACME")
	eventually(t, "on all nodes", func() bool { _, out, _ := s.do("ls", "stock"); return strings.Contains(out, "3 of 3  held") })

	status, out, complaints := s.do("ls", "stock*")
	if status != exact || complaints != "" {
		t.Errorf("exit status %d: %s", status, complaints)
	}
	expect(t, out,
		`^NAME +HOLDER +HOLDS +TTL +TOKEN +ON +VERDICT\n`,
		fmt.Sprintf(`\nstock +%s +1 +[0-9.]+s +%d +3 of 3 +held\n`, l.Holder(), l.Token()),
		`\n"stock room" +`+someone+` +1 +59m[0-9.]+s +0 +1 of 3 +free on a quorum of nodes\n`,
		`\n2 locks match "stock\*" on 3 of 3 nodes\.\n$`,
	)
	if _, out, _ = s.do("ls"); line(out, other.Holder()) == "" || strings.Contains(out, "ACME") || strings.Contains(out, "redquorum_") {
		t.Errorf("got\n%s", out)
	}
}

// A name moves no cursor, and a table has its columns.
func TestLsQuotesNamesThatATerminalWouldObey(t *testing.T) {
	s := newSite(t)
	s.put(0, "a\x1b[2Jb\nc", someone)
	if _, out, _ := s.do("ls"); !strings.Contains(out, `"a\x1b[2Jb\nc"`) || strings.Contains(out, "\x1b") {
		t.Errorf("got %q", out)
	}
}

func TestLsSaysWhereItIsCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for i := range 5 {
		s.put(i%3, fmt.Sprint("lock", i), someone)
	}
	status, out, _ := s.do("ls", "--limit", "4")
	if status != exact || strings.Count(out, someone) != 4 || !strings.Contains(out, "there are more than 4 (--limit)") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	status, out, _ = s.do("ls", "--limit", "5")
	if status != exact || strings.Count(out, someone) != 5 || strings.Contains(out, "more") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
	if err := s.nodes.Hang(0); err != nil {
		t.Fatal(err)
	}
	status, out, complaints := s.do("ls", "--timeout", "200ms", "--node-timeout", "2s")
	if status != exact || !strings.Contains(out, "not all keys were looked at within 200ms (--timeout)") {
		t.Errorf("exit status %d:\n%s%s", status, out, complaints)
	}
}

// One node that is away is shown; without a quorum what is there is shown all the same, and the status says what it is worth.
func TestLsNeedsAQuorum(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := s.hold("stock")
	eventually(t, "on all nodes", func() bool { _, out, _ := s.do("ls"); return strings.Contains(out, "3 of 3  held") })
	for i, want := range []struct {
		status     int
		on, sums   string
		complaints string
	}{
		{exact, "2 of 3  held\n", `1 lock matches "*" on 2 of 3 nodes.`, ""},
		{failed, "1 of 3  unknown: no quorum of nodes agrees\n", `1 lock matches "*" on 1 of 3 nodes.`, `redquorum: ls "*": no quorum of nodes: 1 of 3 answered, need 2: 127.0.0.1:`},
	} {
		if err := s.nodes.Stop(i); err != nil {
			t.Fatal(err)
		}
		status, out, complaints := s.do("ls", "--node-timeout", "1s")
		if status != want.status || !strings.Contains(out, l.Holder()) || !strings.Contains(out, want.on) || !strings.Contains(out, want.sums) ||
			strings.Count(out, "connection refused") != i+1 || !strings.Contains(complaints, want.complaints) || strings.Contains(complaints, "granted") {
			t.Errorf("%d nodes down: exit status %d, want %d:\n%s%s", i+1, status, want.status, out, complaints)
		}
	}
	// Nor is there one where all that is known is that time is up.
	if err := s.nodes.Hang(2); err != nil {
		t.Fatal(err)
	}
	if status, out, complaints := s.do("ls", "--timeout", "100ms"); status != failed || !strings.Contains(complaints, "no quorum") {
		t.Errorf("exit status %d:\n%s%s", status, out, complaints)
	}
}

func TestLsForMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	l := s.hold("stock")
	s.put(1, "minority", someone)
	if err := s.nodes.Stop(0); err != nil {
		t.Fatal(err)
	}
	status, out, complaints := s.do("ls", "--json")
	var got struct {
		Pattern string
		Cut     bool
		Locks   []struct {
			Name, Verdict, Holder string
			Token                 int64
			Nodes                 []struct{ Held bool }
		}
		Nodes []struct {
			Node, Error string
			Whole       bool
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != exact {
		t.Fatalf("exit status %d, %v: %s%s", status, err, out, complaints)
	}
	if got.Pattern != "*" || got.Cut || len(got.Locks) != 2 || len(got.Nodes) != 3 ||
		got.Nodes[0].Whole || got.Nodes[0].Error == "" || !got.Nodes[1].Whole || got.Nodes[1].Error != "" {
		t.Fatalf("got %s", out)
	}
	if m := got.Locks[0]; m.Name != "minority" || m.Verdict != "unknown" || m.Holder != "" || len(m.Nodes) != 3 {
		t.Errorf("got %+v", m)
	}
	if m := got.Locks[1]; m.Name != "stock" || m.Verdict != "held" || m.Holder != l.Holder() || m.Token != l.Token() {
		t.Errorf("got %+v", m)
	}
	// Without locks there is a list all the same.
	if _, out, _ = s.do("ls", "--json", "nothing"); !strings.Contains(out, `"locks":[]`) {
		t.Errorf("got %s", out)
	}
}

// Where holders differ, none is shown for the one.
func TestLsTellsSeveralHoldersApart(t *testing.T) {
	node := func(holder string, ttl time.Duration) quorum.NodeState {
		return quorum.NodeState{Held: true, Holder: holder, HoldCount: 1, TTL: ttl}
	}
	for want, s := range map[string]quorum.State{
		"a\ta:1\t1\t2s\t0\t1 of 3\tfree on a quorum of nodes": {Name: "a", Verdict: quorum.VerdictFree,
			Nodes: []quorum.NodeState{{}, node("a:1", 2*time.Second), {}}},
		"a\tseveral\t-\t2s\t0\t2 of 3\tunknown: no quorum of nodes agrees": {Name: "a",
			Nodes: []quorum.NodeState{node("a:1", time.Second), node("b:1", 2*time.Second), {Err: io.EOF}}},
		"a\tseveral\t-\t1s\t0\t2 of 3\theld, by no single holder on a quorum of nodes": {Name: "a", Verdict: quorum.VerdictHeld, TTL: time.Second,
			Nodes: []quorum.NodeState{node("a:1", time.Second), node("b:1", 2*time.Second), {}}},
		"a\ta:1\t2\tever\t7\t2 of 3\theld": {Name: "a", Verdict: quorum.VerdictHeld, Holder: "a:1", HoldCount: 2, TTL: -1, Token: 7,
			Nodes: []quorum.NodeState{node("a:1", -1), node("a:1", -1), {}}},
		"a\ta key that is no lock\t-\tever\t0\t2 of 3\tunknown: no quorum of nodes agrees": {Name: "a",
			Nodes: []quorum.NodeState{node("a:1", time.Second), {Held: true, TTL: -1}, {Err: io.EOF}}},
	} {
		if got := row(s); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// What is refused is what Redis takes for something else, and nothing that it takes for what it is.
func TestLsTakesEveryPatternThatHasAnEnd(t *testing.T) {
	for _, pattern := range []string{"*", "shop:?", "[ab]*", "[^a]", "[^]", "[a-z]", `[\]]`, `\[`, `\\`, "a]", "a-]", "{eu}:*", "[-a]", "[a-]]"} {
		if err := validatePattern(pattern); err != nil {
			t.Error(err)
		}
	}
	redisserver.Require(t)
	server := redisserver.Start(t)
	for pattern, name := range map[string]string{"[a-]]": "_", "[^]": "x", `[\]]`: "]", "[-a]": "-", `\[`: "[", "a]": "a]"} {
		if err := server.Client().Set(t.Context(), name, 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if found, err := server.Client().Keys(t.Context(), pattern).Result(); err != nil || !slices.Contains(found, name) {
			t.Errorf("%q does not find %q: %q, %v", pattern, name, found, err)
		}
	}
}

// Thousands of locks are shown within seconds, also where a node hangs and each look at it takes a node timeout.
func TestLsOfManyLocksOnRealServers(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	servers := redisserver.StartN(t, 3)
	const locks = 3000
	for _, server := range servers {
		pipe := server.Client().Pipeline()
		for i := range locks {
			pipe.HSet(t.Context(), fmt.Sprint("lock", i), someone, 1)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := &site{t: t}
	shows := func(on string) {
		t.Helper()
		status, out, complaints := s.do("ls", "--nodes", strings.Join(redisserver.URLs(servers), ","), "--limit", "10000", "--node-timeout", "1s", "lock*")
		if status != exact || strings.Count(out, on+"  held\n") != locks {
			t.Errorf("exit status %d, %d locks are held on %s:\n%.2000s%s", status, strings.Count(out, on+"  held\n"), on, out, complaints)
		}
	}
	shows("3 of 3")
	if err := servers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	shows("2 of 3")
}
