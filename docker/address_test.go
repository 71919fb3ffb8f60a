package docker

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// What the engine does now and then, on a port that it happened to choose.
func take(t *testing.T, g *gate) {
	t.Helper()
	l, err := net.Listen("tcp4", g.port.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func newNode(t *testing.T) *node {
	t.Helper()
	g, err := newGate()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{gate: g}
	t.Cleanup(func() { n.gate.close() })
	return n
}

func TestNewNodeWhosePortIsTakenGetsAnother(t *testing.T) {
	n := newNode(t)
	taken := n.gate.port.Addr()
	take(t, n.gate)
	if err := n.lead("127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if n.gate.listener == nil || n.gate.port.Addr() == taken {
		t.Errorf("it listens nowhere, or at %s, which somebody else has", taken)
	}
}

// Its clients would look for it in vain.
func TestKnownNodeKeepsItsPort(t *testing.T) {
	n := newNode(t)
	if err := errors.Join(n.lead("127.0.0.1:1"), n.gate.lead("")); err != nil {
		t.Fatal(err)
	}
	had := n.gate.port.Addr()
	take(t, n.gate)
	if err := n.lead("127.0.0.1:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v, want %v", err, syscall.EADDRINUSE)
	}
	if n.gate.port.Addr() != had {
		t.Error("a node that is known has another address")
	}
}
