package faultnet

import (
	"sync"
	"time"
)

// A Cable is one client's way to the nodes: what happens to it happens to that client alone. The zero Cable is a whole
// one.
type Cable struct {
	mu    sync.Mutex
	cut   map[*Node]bool
	slow  map[*Node]time.Duration
	gates map[*Node]chan struct{}
}

// Cut makes everything disappear that goes from the client to a node or back. Connections look as if they were made.
func (c *Cable) Cut(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil {
		c.cut = map[*Node]bool{}
	}
	c.cut[n] = true
}

// Delay makes everything between the client and a node take d longer in each direction.
func (c *Cable) Delay(n *Node, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slow == nil {
		c.slow = map[*Node]time.Duration{}
	}
	c.slow[n] = d
}

// Hold keeps back everything that goes from the client to a node or back, until Mend.
func (c *Cable) Hold(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gates == nil {
		c.gates = map[*Node]chan struct{}{}
	}
	if c.gates[n] == nil {
		c.gates[n] = make(chan struct{})
	}
}

// Mend ends Cut and Hold.
func (c *Cable) Mend(n *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cut, n)
	if gate := c.gates[n]; gate != nil {
		close(gate)
		delete(c.gates, n)
	}
}

func (c *Cable) delay(n *Node) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow[n]
}

func (c *Cable) isCut(n *Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut[n]
}

// held returns a channel that is closed when the cable is mended; nil if nothing is kept back.
func (c *Cable) held(n *Node) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gates[n]
}
