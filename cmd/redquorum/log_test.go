package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// What the library warns of is one line each, in words.
func TestWarningsAreLinesForAPerson(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newTeller(&out))
	log.Info("a node answers again", "node", "a:1")
	log.Warn("clients differ", "node", "a:1", "ours", 3, "theirs", 5)
	log.Warn("lease lost", "name", `stock "room"`, "why", "MaxHold is over")
	log.Warn("renewal failed", "name", "stock", "error", quorum.ErrLost) // which has been told
	log.Error("two addresses are one server")
	log.With("token", 7).WithGroup("of").Warn("grouped", "node", "b:1")
	log.Warn("a server says", "policy", "ten\x1b[2J\nlines\u2028")
	want := "redquorum: clients differ (node a:1, ours 3, theirs 5)\n" +
		"redquorum: lease lost (name \"stock \\\"room\\\"\"): MaxHold is over\n" +
		"redquorum: two addresses are one server\n" +
		"redquorum: grouped (token 7, of.node b:1)\n" +
		"redquorum: a server says (policy ten\\x1b[2J\\nlines\\u2028)\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// The failure of a node is in the error of a lock that was not had. Once it was had, who fails still is told of, and who fails
// then at once.
func TestFailingNodesAreToldOfOnceTheLockIsHad(t *testing.T) {
	var out bytes.Buffer
	teller := newTeller(&out)
	log := slog.New(teller)
	for _, node := range []string{"a:1", "b:1", "c:1"} {
		log.Warn("a node does not answer", "node", node, "error", errors.New("redquorum: refused"))
	}
	log.Error("too few nodes are left", "nodes", 1, "need", 2)
	if out.Len() > 0 {
		t.Errorf("it is told of already:\n%s", &out)
	}
	teller.relent(func() quorum.Stats {
		log.LogAttrs(context.Background(), slog.LevelWarn, "meanwhile", slog.String("node", "d:1"), slog.Any("error", errors.New("away")))
		return quorum.Stats{Nodes: []quorum.NodeStats{
			{Node: "a:1", Condition: quorum.NodeSilent, Err: errors.New("a:1: refused")},
			{Node: "b:1", Condition: quorum.NodeRefusing, Err: errors.New("b:1: NOAUTH")},
			{Node: "c:1", Condition: quorum.NodeAnswering},
			{Node: "d:1", Condition: quorum.NodeSilent, Err: errors.New("d:1: away")},
		}}
	})
	log.Error("too few nodes are left", "nodes", 1, "need", 2)
	want := "redquorum: meanwhile (node d:1): away\n" +
		"redquorum: a node does not answer (node a:1): refused\n" +
		"redquorum: a node refuses requests (node b:1): NOAUTH\n" +
		"redquorum: too few nodes are left (nodes 1, need 2)\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
