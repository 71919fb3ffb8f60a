package simulation

import (
	"fmt"
	"strings"
	"time"
)

// Node is one Redis server. Everything is guarded by the world's mutex.
type Node struct {
	world *World
	id    int
	name  string

	data     store
	saved    store // the snapshot
	scripts  map[string]string
	settings Settings
	runID    string
	replID   string

	line     timeline
	wall     int64 // microseconds since 1970 when the clock read 0
	down     bool
	life     int // how often it was started
	sessions []*session

	paused  time.Duration // until when it is stopped
	waiting []waiting     // what arrived meanwhile
}

// session is the node's end of a connection.
type session struct {
	conn     *conn
	resp3    bool
	channels map[string]bool
}

// waiting is a request that waits for a stopped node.
type waiting struct {
	c *conn
	m *message
}

// Name is the node's address.
func (n *Node) Name() string { return n.name }

func (n *Node) micros() int64 {
	return n.wall + int64(n.line.reading(n.world.now())/time.Microsecond)
}

func (n *Node) millis() int64 { return n.micros() / 1000 }

// boot begins a new life with this data.
func (n *Node) boot(data store) {
	n.life++
	n.down = false
	n.data = data
	n.scripts = make(map[string]string)
	id := func(what uint64) string {
		d := diceFor(n.world.seed, 'i', uint64(n.id), uint64(n.life), what)
		return fmt.Sprintf("%016x%016x%08x", d.word(), d.word(), uint32(d.word()))
	}
	n.runID, n.replID = id(1), id(2)
}

// crash ends a life: connections break, and what a stopped process had in its sockets is gone.
func (n *Node) crash() {
	n.down = true
	n.life++
	n.waiting, n.paused = nil, 0
	for _, s := range append([]*session(nil), n.sessions...) {
		s.conn.breakOff()
	}
	n.sessions = nil
}

func (n *Node) hangUp(s *session) {
	for i, other := range n.sessions {
		if other == s {
			n.sessions = append(n.sessions[:i:i], n.sessions[i+1:]...)
			return
		}
	}
}

// take executes a request, or keeps it until the node goes on.
func (n *Node) take(c *conn, m *message) {
	if n.down {
		return
	}
	if n.world.now() < n.paused {
		n.waiting = append(n.waiting, waiting{c, m})
		return
	}
	n.execute(c, m)
}

// resume executes what has piled up: in order for each connection, in any order for them all, as a server does that
// finds several sockets readable.
func (n *Node) resume(d *dice) {
	queue := n.waiting
	n.waiting = nil
	for len(queue) > 0 {
		first := queue[int(d.float()*float64(len(queue)))].c
		rest := queue[:0:0]
		for _, q := range queue {
			if q.c == first {
				q.m.late = q.m.late || q.c.closed
				n.execute(q.c, q.m)
			} else {
				rest = append(rest, q)
			}
		}
		queue = rest
	}
}

// execute runs a request and answers it.
func (n *Node) execute(c *conn, m *message) {
	args := m.args
	name := strings.ToUpper(args[0])
	if m.late || c.closed {
		n.world.count.Late++
	}
	var reply any
	switch name {
	case "EVALSHA", "EVAL":
		reply = n.script(args)
		n.world.executed(n, m, reply)
	case "SCRIPT":
		reply = n.scriptCommand(args)
	case "HELLO":
		c.session.resp3 = len(args) > 1 && args[1] == "3"
		reply = pairs{
			"server", "redis", "version", "7.0.15", "proto", int64(3), "id", int64(1),
			"mode", "standalone", "role", "master", "modules", []any{},
		}
	case "SELECT", "AUTH", "CLIENT":
		reply = status("OK")
	case "SUBSCRIBE":
		c.session.subscribe(args[1:])
		return
	case "UNSUBSCRIBE":
		c.session.unsubscribe(args[1:])
		return
	case "PING":
		if reply = n.ping(args); len(c.session.channels) > 0 && !c.session.resp3 {
			reply = []any{"pong", ""}
		}
	default:
		reply = n.do(args)
	}
	if !m.copy {
		c.reply(reply)
	}
}
