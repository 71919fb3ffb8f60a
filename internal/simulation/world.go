package simulation

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/redquorum/redquorum/script"
)

// Counts is what happened, so that one sees that a simulation is not idle.
type Counts struct {
	Requests, LostRequests, LostReplies, Twice, Late, Resets, Dials, RefusedDials int
	Crashes, DataLosses, Snapshots, Pauses, ClientPauses, Partitions, Jumps       int
	Vanished                                                                      int // locks
	// Scripts counts what the scripts did, by script and status: "renew restored".
	Scripts map[string]int
}

// Add adds what happened in another run.
func (c *Counts) Add(o Counts) {
	c.Requests += o.Requests
	c.LostRequests += o.LostRequests
	c.LostReplies += o.LostReplies
	c.Twice += o.Twice
	c.Late += o.Late
	c.Resets += o.Resets
	c.Dials += o.Dials
	c.RefusedDials += o.RefusedDials
	c.Crashes += o.Crashes
	c.DataLosses += o.DataLosses
	c.Snapshots += o.Snapshots
	c.Pauses += o.Pauses
	c.ClientPauses += o.ClientPauses
	c.Partitions += o.Partitions
	c.Jumps += o.Jumps
	c.Vanished += o.Vanished
	if c.Scripts == nil {
		c.Scripts = make(map[string]int)
	}
	for what, n := range o.Scripts {
		c.Scripts[what] += n
	}
}

// Executed is a script that a node has run.
type Executed struct {
	At     time.Duration
	Node   int
	Script string // its name, "" if it is not one of package script's
	Keys   []string
	Args   []string
	Status string // the first field of the answer; an error as a whole
	Fence  int64
	Late   bool // its connection had been closed before
	Copy   bool // it was a copy of a request
}

// World is the nodes, the clients and the network between them. Make it inside a synctest bubble.
type World struct {
	// OnScript is called for every script that a node has run, with the world locked: it must not call back.
	OnScript func(Executed)
	// OnFault is called for every fault, with the world locked.
	OnFault func(at time.Duration, what string)

	seed  uint64
	start time.Time

	mu      sync.Mutex
	count   Counts
	healed  bool
	nodes   []*Node
	clients []*Client
}

// Client is a process that uses the nodes.
type Client struct {
	world  *World
	id     int
	clock  *Clock
	routes []*route

	paused time.Duration // until when it stands still, see Pause
	gone   bool          // for ever
}

// New returns a world of empty nodes and clients, with a fair network.
func New(seed uint64, nodes, clients int, weather Weather) *World {
	w := &World{seed: seed, start: time.Now()}
	w.count.Scripts = make(map[string]int)
	for i := range nodes {
		n := &Node{
			world: w, id: i, name: fmt.Sprintf("%c.sim:6379", 'a'+i), settings: defaultSettings(),
			line: timeline{rate: 1}, wall: w.start.UnixMicro(),
		}
		n.boot(store{})
		w.nodes = append(w.nodes, n)
	}
	for i := range clients {
		c := &Client{world: w, id: i, clock: newClock(1, 0)}
		for range nodes {
			c.routes = append(c.routes, &route{weather: weather})
		}
		w.clients = append(w.clients, c)
	}
	return w
}

// now is the true time since the start.
func (w *World) now() time.Duration { return time.Since(w.start) }

// Now is the true time since the start.
func (w *World) Now() time.Duration { return w.now() }

// after calls f in d. It makes no goroutine before.
func (w *World) after(d time.Duration, f func()) { time.AfterFunc(d, f) }

// Counts is what happened so far.
func (w *World) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.count
	c.Scripts = maps.Clone(c.Scripts)
	return c
}

// Node returns node i.
func (w *World) Node(i int) *Node { return w.nodes[i] }

// Client returns client i.
func (w *World) Client(i int) *Client { return w.clients[i] }

// Clock is the client's clock.
func (c *Client) Clock() *Clock { return c.clock }

// Pause has the client stand still, as a stop of the world or SIGSTOP does, while true time passes: it neither sends nor
// receives, no alarm of its clock fires, and whoever sleeps by Sleep sleeps on. What else it does, by timers and contexts of
// Go's own, goes on: nobody can stop those.
func (c *Client) Pause(length time.Duration) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.pause(length)
}

func (c *Client) pause(length time.Duration) {
	c.world.count.ClientPauses++
	c.paused = max(c.paused, c.world.now()+length)
	c.clock.pause(c.paused + scramble)
}

// scramble is how long after a pause alarms fire. Of those who sleep, half wake up before, as chance has it.
const scramble = 500 * time.Nanosecond

// Sleep sleeps as a goroutine of the client: it does not wake up before a pause is over.
func (c *Client) Sleep(d time.Duration) {
	began := c.world.now()
	for time.Sleep(d); ; time.Sleep(d) {
		c.world.mu.Lock()
		d = c.paused - c.world.now()
		c.world.mu.Unlock()
		if d <= 0 {
			return
		}
		d += lag(c.id, 0, began) // not all at one moment
	}
}

// Vanish takes the client off the network for ever, as if its process had died. What it had sent may still arrive.
func (c *Client) Vanish() {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	c.gone = true
	for _, n := range w.nodes {
		for _, s := range append([]*session(nil), n.sessions...) {
			if s.conn.client == c {
				s.conn.closed = true // not broken: what is under way goes on
				n.hangUp(s)
				s.conn.wake()
			}
		}
	}
}

// Keys are the keys of node i that have not expired.
func (w *World) Keys(i int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[i]
	var keys []string
	for key := range n.data {
		if n.at(key) != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Fields are the fields of a hash on node i; none if there is no hash.
func (w *World) Fields(i int, key string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.nodes[i].at(key); v != nil && v.hash != nil {
		return append([]string(nil), v.hash.fields...)
	}
	return nil
}

// Skew sets how a client's clocks run: the rate, and by how much its wall time is ahead.
func (c *Client) Skew(rate float64, wall time.Duration) {
	c.clock.change(func(now time.Duration) { c.clock.line.turn(now, rate); c.clock.wall = wall })
}

// Skew sets how a node's clock runs: the rate, and by how much it is ahead.
func (n *Node) Skew(rate float64, ahead time.Duration) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.line.turn(n.world.now(), rate)
	n.line.jump(n.world.now(), ahead)
}

// Path sets the latency between a client and a node, and what else befalls their messages.
func (w *World) Path(client, node int, weather Weather) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[client].routes[node].weather = weather
}

// scriptNames names package script's scripts.
var scriptNames = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for _, s := range script.All() {
		names[s.SHA] = s.Name
		names[s.Source] = s.Name
	}
	return names
})

// executed counts and reports a script.
func (w *World) executed(n *Node, m *message, reply any) {
	e := Executed{At: w.now(), Node: n.id, Script: scriptNames()[m.args[1]], Late: m.late, Copy: m.copy}
	switch v := reply.(type) {
	case failure:
		e.Status, _, _ = strings.Cut(string(v), " ")
	case []any:
		if len(v) > 1 {
			e.Status, _ = v[0].(string)
			e.Fence, _ = v[1].(int64)
		}
	}
	w.count.Scripts[e.Script+" "+e.Status]++
	if m.late {
		w.count.Scripts[e.Script+" late: "+e.Status]++
	}
	if w.OnScript != nil {
		if keys := m.args[2]; len(keys) == 1 {
			k := int(keys[0] - '0')
			e.Keys, e.Args = m.args[3:3+k], m.args[3+k:]
		}
		w.OnScript(e)
	}
}

// Random returns a source for what the client itself draws. It follows from the moment of the draw, see dice.
func (c *Client) Random() func() float64 {
	return func() float64 {
		return diceFor(c.world.seed, 'x', uint64(c.id), uint64(c.world.now())).float()
	}
}
