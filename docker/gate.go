package docker

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redquorum/redquorum/internal/loopback"
)

// A direction of traffic, seen from the clients.
type direction int

const (
	requests direction = iota // from clients to the node
	replies                   // from the node to clients
)

// passTimeout bounds how long one write may take, and so how long a partition may
// have to wait for it. A write blocks only once the kernel holds megabytes.
const passTimeout = 10 * time.Second

// A gate stands at a node's address and carries each connection on to the
// container. The engine gives a container another port at every start, and taking
// a container off its network breaks the connections through that port; the gate
// is what keeps the address, and what can withhold data without breaking anything.
type gate struct {
	port *loopback.Port
	done chan struct{}
	wg   sync.WaitGroup

	// Held for reading while data is passed on: once withhold has returned,
	// nothing more comes through.
	mu       sync.RWMutex
	target   string  // where the container listens; empty while it is down
	withheld [2]bool // by direction
	changed  chan struct{}
	listener net.Listener

	// Apart from mu, to close connections under a write that blocks.
	connMu sync.Mutex
	conns  map[*net.TCPConn]bool // true: to the container
	closed bool
}

func newGate() (*gate, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, err
	}
	return &gate{
		port:    port,
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		conns:   map[*net.TCPConn]bool{},
	}, nil
}

// lead makes connections go to the target, or, if it is empty, nowhere: they are
// refused, as by a host on which no server runs. Connections to where it led before
// are broken: a container that died may have had no time to say so.
func (g *gate) lead(target string) error {
	err := g.change(func() { g.target = target })
	g.connMu.Lock()
	defer g.connMu.Unlock()
	for c, toNode := range g.conns {
		if toNode {
			_ = c.Close()
		}
	}
	return err
}

// withhold makes the gate keep what comes from a direction, or let it through.
func (g *gate) withhold(toNode, toClients bool) error {
	return g.change(func() { g.withheld = [2]bool{requests: toNode, replies: toClients} })
}

func (g *gate) change(what func()) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	what()
	close(g.changed)
	g.changed = make(chan struct{})

	// A host that is cut off refuses nothing: nobody hears it.
	cut := g.withheld[requests] || g.withheld[replies]
	listens := g.target != "" || cut
	switch {
	case listens && g.listener == nil && !g.isClosed():
		l, err := net.Listen("tcp4", g.port.Addr())
		if err != nil {
			return fmt.Errorf("docker: the node's address: %w", err)
		}
		g.listener = l
		g.wg.Go(func() { g.accept(l) })
	case !listens && g.listener != nil:
		_ = g.listener.Close()
		g.listener = nil
	}
	return nil
}

func (g *gate) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		g.wg.Go(func() { g.carry(c.(*net.TCPConn)) })
	}
}

// carry takes a client's connection to the node and back.
func (g *gate) carry(client *net.TCPConn) {
	if !g.own(client, false) {
		return
	}
	defer g.disown(client)
	node, err := g.dial()
	if err != nil || !g.own(node, true) {
		_ = g.pass(replies, func() { reset(client) })
		return
	}
	defer g.disown(node)
	var both sync.WaitGroup
	both.Go(func() { g.stream(requests, client, node) })
	both.Go(func() { g.stream(replies, node, client) })
	both.Wait()
}

// dial connects to the container, once requests come through.
func (g *gate) dial() (*net.TCPConn, error) {
	var target string
	if err := g.pass(requests, func() { target = g.target }); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: passTimeout}
	c, err := d.DialContext(context.Background(), "tcp4", target)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// pass runs f while the direction is open, waiting for it if need be; not at all
// if the gate closes first.
func (g *gate) pass(d direction, f func()) error {
	for {
		g.mu.RLock()
		if g.isClosed() {
			g.mu.RUnlock()
			return net.ErrClosed
		}
		if !g.withheld[d] {
			f()
			g.mu.RUnlock()
			return nil
		}
		changed := g.changed
		g.mu.RUnlock()
		select {
		case <-changed:
		case <-g.done:
		}
	}
}

// own makes the gate's end the connection's.
func (g *gate) own(c *net.TCPConn, toNode bool) bool {
	g.connMu.Lock()
	defer g.connMu.Unlock()
	if g.closed {
		_ = c.Close()
		return false
	}
	g.conns[c] = toNode
	return true
}

func (g *gate) disown(c *net.TCPConn) {
	_ = c.Close()
	g.connMu.Lock()
	defer g.connMu.Unlock()
	delete(g.conns, c)
}

func (g *gate) isClosed() bool {
	g.connMu.Lock()
	defer g.connMu.Unlock()
	return g.closed
}

// close ends all connections and gives the port back. Call it once.
func (g *gate) close() {
	g.connMu.Lock()
	g.closed = true
	close(g.done)
	for c := range g.conns {
		_ = c.Close()
	}
	g.connMu.Unlock()
	g.mu.Lock()
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	g.mu.Unlock()
	g.wg.Wait()
	g.port.Release()
}

// reset ends a connection the hard way: the other side gets a RST.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
