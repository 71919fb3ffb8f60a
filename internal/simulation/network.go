package simulation

import (
	"context"
	"errors"
	"net"
	"time"
)

// Weather is what the network does to the messages of a path, each as a probability unless it says otherwise.
type Weather struct {
	Latency   time.Duration // typical, in one direction
	Tail      float64       // a message is very late
	LateBy    time.Duration // then typically by this much
	LoseAsk   float64       // a request is lost, and whatever follows it on its connection
	LoseReply float64       // likewise
	Twice     float64       // a request is executed a second time, later
	Reset     float64       // the connection breaks when a request arrives, which may be executed or not
	Refuse    float64       // a dial is refused
}

// Fair is a network that does no more than delay.
func Fair(latency time.Duration) Weather {
	return Weather{Latency: latency, Tail: 0.005, LateBy: 10 * latency}
}

// delay draws how long a message takes. Latencies have a floor, a spread and a heavy tail, and differ in nanoseconds.
func (w Weather) delay(d *dice) time.Duration {
	delay := w.Latency/2 + d.about(w.Latency/2) + 1
	if d.chance(w.Tail) {
		delay += w.LateBy/4 + d.about(w.LateBy)
	}
	return delay
}

// route is the way between one client and one node.
type route struct {
	weather Weather
	there   time.Duration // until when nothing gets from the client to the node
	back    time.Duration // and from the node to the client
	birth   [2]uint64     // of the last connection: when it was dialled, and its deadline
	twins   uint64        // how many had the same before
}

var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset by peer")
)

// Dialer returns how the client connects to a node.
func (c *Client) Dialer(node int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx, node) }
}

// dial makes a connection, which takes a round trip.
func (c *Client) dial(ctx context.Context, node int) (net.Conn, error) {
	w, n := c.world, c.world.nodes[node]
	w.mu.Lock()
	now := w.now()
	p := c.routes[node]
	// Two requests that dial at one moment have deadlines of their own, as a rule. Twins must part here, or everything
	// that befalls them would go on to coincide.
	deadline, _ := ctx.Deadline()
	birth := [2]uint64{uint64(now), uint64(deadline.Sub(w.start))}
	if p.birth == birth {
		p.twins++
	} else {
		p.birth, p.twins = birth, 0
	}
	d := diceFor(w.seed, 'd', uint64(c.id), uint64(node), birth[0], birth[1], p.twins)
	takes := p.weather.delay(d) + p.weather.delay(d)
	refused := d.chance(p.weather.Refuse)
	cut := now < p.there || now+takes < p.back
	takes += max(0, c.paused-now)
	gone := c.gone
	w.count.Dials++
	w.mu.Unlock()
	if gone {
		return nil, &net.OpError{Op: "dial", Net: "sim", Err: errRefused}
	}
	if cut { // nobody answers
		takes = 24 * time.Hour
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		time.Sleep(lag(c.id, node, now))
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if refused || n.down || c.gone {
		w.count.RefusedDials++
		return nil, &net.OpError{Op: "dial", Net: "sim", Err: errRefused}
	}
	return newConn(c, n), nil
}

// arrive is called when a request is due at its node.
func (c *conn) arrive(m *message) {
	w, n := c.client.world, c.node
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if n.life != c.life {
		return // what was under way to a process that is no more
	}
	if c.closed && !m.late {
		// The client has hung up. What it had sent may be lost with the connection, or arrive all the same.
		if m.dice.chance(0.5) {
			m.late = true
			w.after(m.dice.about(4*c.route().weather.LateBy), func() { c.arrive(m) })
			return
		}
		m.lost = true
	} else if blocked := c.route().there; now < blocked {
		// The kernel sends it again and again; it arrives some time after the partition has healed.
		w.after(blocked-now+m.dice.about(20*time.Millisecond)+1, func() { c.arrive(m) })
		return
	}
	m.there = true
	for len(c.going) > 0 && c.going[0].there {
		next := c.going[0]
		c.going = c.going[1:]
		if !next.lost && !c.severed {
			c.deliver(next)
		}
	}
}

// deliver gives a request to its node.
func (c *conn) deliver(m *message) {
	if !m.reset || c.closed {
		c.node.take(c, m)
		return
	}
	c.client.world.count.Resets++
	if m.dice.chance(0.5) {
		c.node.take(c, m)
	}
	c.breakOff()
}

// come is called when a reply is due at its client.
func (c *conn) come(p *packet) {
	w := c.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if c.closed || c.severed {
		return
	}
	if held := max(c.client.paused, c.route().back); now < held {
		w.after(held-now+p.dice.about(time.Millisecond)+1, func() { c.come(p) })
		return
	}
	p.here = true
	for len(c.coming) > 0 && c.coming[0].here {
		c.received = append(c.received, c.coming[0].data...)
		c.coming = c.coming[1:]
	}
	c.wake()
}

// route is the way that the connection goes.
func (c *conn) route() *route { return c.client.routes[c.node.id] }
