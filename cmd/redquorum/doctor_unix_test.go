//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// tell tells node i something, past the commands.
func (s *site) tell(i int, args ...any) {
	s.t.Helper()
	opts, err := redis.ParseURL(s.nodes.URLs()[i])
	if err != nil {
		s.t.Fatal(err)
	}
	c := redis.NewClient(opts)
	defer c.Close()
	if err := c.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// The exit status says whether somebody has to look at the report.
func TestDoctorsStatusIsThatOfTheWorstFinding(t *testing.T) {
	s := newSite(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants := func(why string, status int, args string, says ...string) {
		t.Helper()
		got, out, complaints := s.do(strings.Fields("doctor " + args)...)
		if got != status {
			t.Errorf("%s: %s: exit status %d, want %d:\n%s%s", why, args, got, status, out, complaints)
		}
		for _, text := range says {
			if !strings.Contains(out+complaints, text) {
				t.Errorf("%s: %s: no %q in:\n%s%s", why, args, text, out, complaints)
			}
		}
	}
	wants("the smallest ACL", exact, "--acl shop:", "~shop:* ", " +evalsha")
	wants("an ACL for everybody's names", failed, "--acl *", "Prefix")
	wants("behind a prefix", exact, "--prefix shop:", "3 of 3 nodes vote")
	wants("a prefix that is none", failed, "--prefix *", "Prefix")
	wants("all well", exact, "--strict", "RESULT", "3 of 3 nodes vote, and a quorum is 2; 3 notes.")
	wants("times that clients refuse", unhealthy, "--ttl 100ms --node-timeout 90ms", "problem: times", "too small")

	s.tell(1, "HSET", script.RecordKey, "nodes", 5)
	wants("a warning", exact, "", "warning: restart guard", "5 nodes")
	wants("a warning", unhealthy, "--strict", "warning: restart guard")

	if err := s.nodes.Stop(1); err != nil {
		t.Fatal(err)
	}
	wants("one down", unhealthy, "", "problem: reachability", "connection refused", "2 of 3 nodes vote")
	if err := s.nodes.Stop(2); err != nil {
		t.Fatal(err)
	}
	wants("two down", failed, "", "problem: reachability", "1 of 3 nodes vote", "no quorum of nodes: 1 of 3 would vote, need 2")
	wants("two down", failed, "--json", `"severity":"problem"`, "no quorum of nodes")
	wants("no nodes", failed, "--nodes=", "names no node")
	wants("one twice", failed, "--nodes redis://127.0.0.1:1,redis://localhost:1", "same address")
}

func TestDoctorForMachines(t *testing.T) {
	s := newSite(t)
	if err := s.nodes.Stop(0); err != nil {
		t.Fatal(err)
	}
	_, out, complaints := s.do("doctor", "--json")
	var report struct {
		Quorum, Voting int
		Nodes          []struct {
			Node      string
			Answers   bool
			RoundTrip float64 `json:"round_trip_ms"`
		}
		Findings []struct {
			Severity, Check, Found, Means, Fix string
			Nodes                              []string
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s%s", err, out, complaints)
	}
	if report.Quorum != 2 || len(report.Nodes) != 3 || report.Nodes[0].Answers || !report.Nodes[1].Answers || report.Nodes[1].RoundTrip <= 0 {
		t.Errorf("got %s", out)
	}
	for _, f := range report.Findings {
		if f.Check == "" || f.Found == "" || (f.Severity == "ok") != (f.Fix == "") || (f.Severity == "ok") != (f.Means == "") {
			t.Errorf("got %+v", f)
		}
		if f.Severity == "problem" && (f.Check != "reachability" || len(f.Nodes) != 1 || f.Nodes[0] != report.Nodes[0].Node) {
			t.Errorf("got %+v", f)
		}
	}
}
