package simulation

import (
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// conn is the client's end of a connection. Everything is guarded by the world's mutex.
type conn struct {
	client  *Client
	node    *Node
	life    int // of the node when the connection was made
	session *session

	written  []byte // an incomplete command
	received []byte
	signal   chan struct{} // something changed for a reader; has room for one
	deadline time.Time

	born    time.Duration
	closed  bool // by the client
	severed bool // by the network or the node: nothing gets through any more
	broken  bool // and the client has noticed

	// In order: what follows is never delivered sooner than what went before, though each piece may be held up for a
	// time of its own.
	asked, replied time.Duration
	going          []*message
	coming         []*packet
	// A direction that lost something delivers nothing any more, as TCP does without the missing piece.
	deaf, mute bool
}

// message is a request under way.
type message struct {
	args  []string
	dice  *dice
	reset bool
	late  bool // it arrives after its connection was closed
	copy  bool // nobody gets the reply
	there bool // it would be delivered, were it its turn
	lost  bool // it never will be
}

// packet is a reply under way.
type packet struct {
	data []byte
	dice *dice
	here bool // it would be delivered, were it its turn
}

func newConn(c *Client, n *Node) *conn {
	cn := &conn{client: c, node: n, life: n.life, born: c.world.now(), signal: make(chan struct{}, 1)}
	cn.session = &session{conn: cn}
	n.sessions = append(n.sessions, cn.session)
	return cn
}

func (c *conn) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Write sends: every command in it is a message of its own.
func (c *conn) Write(p []byte) (int, error) {
	w := c.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.broken:
		return 0, c.opError("write", errReset)
	}
	c.written = append(c.written, p...)
	for {
		args, used, err := readCommand(c.written)
		if err != nil {
			return 0, err
		}
		if used == 0 {
			return len(p), nil
		}
		content := digest(c.written[:used])
		if strings.HasSuffix(strings.ToLower(args[0]), "subscribe") {
			// A client may name its channels in any order.
			slices.Sort(args[1:])
			content = digest([]byte(strings.Join(args, " ")))
		}
		c.send(args, content)
		c.written = c.written[used:]
	}
}

// send draws a request's fate.
func (c *conn) send(args []string, content uint64) {
	w, now := c.client.world, c.client.world.now()
	weather := c.route().weather
	d := diceFor(w.seed, 'q', uint64(c.client.id), uint64(c.node.id), uint64(now), uint64(c.born), content)
	due := max(now, c.client.paused) + weather.delay(d)
	due = max(due, c.asked+1)
	c.asked = due
	w.count.Requests++
	if c.deaf || d.chance(weather.LoseAsk) {
		c.deaf = true
		w.count.LostRequests++
		return
	}
	m := &message{args: args, dice: d, reset: d.chance(weather.Reset)}
	c.going = append(c.going, m)
	w.after(due-now, func() { c.arrive(m) })
	if d.chance(weather.Twice) && strings.HasPrefix(args[0], "EVAL") {
		again := &message{args: args, dice: d, copy: true}
		w.after(due-now+d.about(weather.LateBy)+1, func() { c.arriveAgain(again) })
	}
}

// arriveAgain delivers the copy of a request, on whatever way it took.
func (c *conn) arriveAgain(m *message) {
	w := c.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.node.life == c.life && w.now() >= c.route().there {
		w.count.Twice++
		c.node.take(c, m)
	}
}

// reply sends what the node says.
func (c *conn) reply(v any) {
	if c.severed || c.closed {
		return
	}
	w, now := c.client.world, c.client.world.now()
	weather := c.route().weather
	data := writeReply(nil, v, c.session.resp3)
	d := diceFor(w.seed, 'r', uint64(c.client.id), uint64(c.node.id), uint64(now), uint64(c.born), digest(data))
	due := max(now+weather.delay(d), c.replied+1)
	c.replied = due
	if c.mute || d.chance(weather.LoseReply) {
		c.mute = true
		w.count.LostReplies++
		return
	}
	p := &packet{data: data, dice: d}
	c.coming = append(c.coming, p)
	w.after(due-now, func() { c.come(p) })
}

// breakOff ends the connection from the other side. The client hears of it a little later, and not of all connections
// at one moment.
func (c *conn) breakOff() {
	if c.severed {
		return
	}
	w := c.client.world
	c.severed = true
	c.node.hangUp(c.session)
	d := diceFor(w.seed, 'b', uint64(c.client.id), uint64(c.node.id), uint64(w.now()), uint64(c.born))
	w.after(c.route().weather.delay(d), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.broken = true
		c.wake()
	})
}

// Read waits for what comes from the node.
func (c *conn) Read(p []byte) (int, error) {
	w := c.client.world
	for {
		w.mu.Lock()
		n, err, deadline := 0, error(nil), c.deadline
		switch {
		case c.closed:
			err = net.ErrClosed
		case len(c.received) > 0:
			n = copy(p, c.received)
			c.received = c.received[n:]
		case c.broken:
			err = c.opError("read", errReset)
		case !deadline.IsZero() && !time.Now().Before(deadline.Add(c.lag())):
			err = os.ErrDeadlineExceeded
		}
		w.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		if len(p) == 0 {
			return 0, io.ErrShortBuffer
		}
		if deadline.IsZero() {
			<-c.signal
			continue
		}
		timer := time.NewTimer(time.Until(deadline) + c.lag())
		select {
		case <-c.signal:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// lag is how much later than at its deadline a read ends. All nodes' deadlines are the same moment; which of them is
// noticed first shall not be a matter of chance.
func (c *conn) lag() time.Duration { return lag(c.client.id, c.node.id, c.born) }

func lag(client, node int, now time.Duration) time.Duration {
	return 1 + time.Duration(*diceFor(uint64(client), uint64(node), uint64(now))%997)
}

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "sim", Err: err}
}

// Close hangs up.
func (c *conn) Close() error {
	c.client.world.mu.Lock()
	defer c.client.world.mu.Unlock()
	c.closed = true
	c.node.hangUp(c.session)
	c.wake()
	return nil
}

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.client.world.mu.Lock()
	defer c.client.world.mu.Unlock()
	c.deadline = t
	c.wake()
	return nil
}

// SetWriteDeadline does nothing: a write never waits.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) LocalAddr() net.Addr  { return addr("client") }
func (c *conn) RemoteAddr() net.Addr { return addr(c.node.name) }

type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }
