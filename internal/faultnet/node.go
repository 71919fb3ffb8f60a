package faultnet

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
)

// Node is one server of the network. Make it inside the bubble.
type Node struct {
	addr string

	mu      sync.Mutex
	redis   *miniredis.Miniredis
	down    bool
	delay   time.Duration
	held    chan struct{} // closed when the node goes on; nil while it runs
	gates   []chan struct{}
	loseIn  bool // requests are lost
	loseOut bool // replies are lost
	conns   map[*link]struct{}
	dials   int
}

// New returns n empty nodes, for the length of the test.
func New(t testing.TB, n int) []*Node {
	nodes := make([]*Node, n)
	for i := range nodes {
		nodes[i] = &Node{addr: string(rune('a'+i)) + ".test:6379", conns: map[*link]struct{}{}}
		nodes[i].boot()
		t.Cleanup(nodes[i].Close)
	}
	return nodes
}

func (n *Node) boot() {
	n.redis = miniredis.NewMiniRedis()
	n.redis.ClockTTL(true)
}

// Addr is the name of the node.
func (n *Node) Addr() string { return n.addr }

// Open returns a client of the node, on a clock of the bubble, at the end of a cable.
func (n *Node) Open(t testing.TB, clk clock.Clock, cable *Cable, options ...node.Option) *node.Node {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return n.dial(cable) }
	client, err := node.New(&redis.Options{Addr: n.addr, Dialer: dial}, append(options, node.WithClock(clk))...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Redis is the server itself, to look at and to change directly.
func (n *Node) Redis() *miniredis.Miniredis {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.redis
}

// Dials is how many connections were made so far.
func (n *Node) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// Requests is how many commands the server has carried out since it was started empty.
func (n *Node) Requests() int { return n.Redis().CommandCount() }

// Delay makes everything take d in each direction.
func (n *Node) Delay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// Hold stops the node, as SIGSTOP does: connections are made, requests taken, nothing answered. Resume goes on with
// all of it, connections that were closed meanwhile included.
func (n *Node) Hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held = make(chan struct{})
	}
}

// HoldConnections holds only the connections that there are: what is on its way in them arrives after what is sent over
// new ones. Resume goes on with it.
func (n *Node) HoldConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	gate := make(chan struct{})
	for l := range n.conns {
		l.gate.Store(&gate)
	}
	n.gates = append(n.gates, gate)
}

// Resume ends Hold and HoldConnections.
func (n *Node) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		close(n.held)
		n.held = nil
	}
	for _, gate := range n.gates {
		close(gate)
	}
	n.gates = nil
}

// LoseRequests makes requests disappear on the way.
func (n *Node) LoseRequests(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loseIn = on
}

// LoseReplies makes replies disappear on the way.
func (n *Node) LoseReplies(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loseOut = on
}

// Kill ends the node: connections break, new ones are refused.
func (n *Node) Kill() {
	n.mu.Lock()
	n.down = true
	var conns []*link
	for l := range n.conns {
		conns = append(conns, l)
	}
	n.mu.Unlock()
	for _, l := range conns {
		l.cut()
	}
}

// Break breaks the connections that there are; new ones are made.
func (n *Node) Break() {
	n.mu.Lock()
	var conns []*link
	for l := range n.conns {
		conns = append(conns, l)
	}
	n.mu.Unlock()
	for _, l := range conns {
		l.cut()
	}
}

// Start starts a node that was killed, with or without its data.
func (n *Node) Start(keepData bool) {
	n.mu.Lock()
	old := n.redis
	if !keepData {
		n.boot()
	}
	n.down = false
	n.mu.Unlock()
	if !keepData {
		old.Close()
	}
}

// Restart kills the node and starts it empty.
func (n *Node) Restart() {
	n.Kill()
	n.Start(false)
}

// Close ends everything.
func (n *Node) Close() {
	n.Resume()
	n.Kill()
	n.Redis().Close()
}

var errRefused = errors.New("connection refused")

// dial makes a connection. The server's end is served by miniredis, the client's end is returned, and a link with two
// directions lies in between.
func (n *Node) dial(cable *Cable) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	}
	server, err := n.redis.Dial()
	if err != nil {
		return nil, err
	}
	client, ours := net.Pipe()
	l := &link{node: n, cable: cable, client: ours, server: server, broken: make(chan struct{})}
	n.conns[l] = struct{}{}
	l.start()
	return client, nil
}

// conditions are what the network does to a piece of data at this moment.
func (n *Node) conditions(toServer bool) (delay time.Duration, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if toServer {
		return n.delay, n.loseIn
	}
	return n.delay, n.loseOut
}

// running returns a channel that is closed when the node goes on; nil if it runs.
func (n *Node) running() chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held
}

func (n *Node) drop(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, l)
}

// Alias is another address of the same server: what a misconfiguration makes of two nodes.
func (n *Node) Alias(addr string) *Alias { return &Alias{addr, n} }

// Alias is a second address.
type Alias struct {
	addr string
	node *Node
}

// Open returns a client of the server at its second address.
func (a *Alias) Open(t testing.TB, clk clock.Clock) *node.Node {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return a.node.dial(&Cable{}) }
	client, err := node.New(&redis.Options{Addr: a.addr, Dialer: dial}, node.WithClock(clk))
	if err != nil {
		t.Fatal(err)
	}
	return client
}
