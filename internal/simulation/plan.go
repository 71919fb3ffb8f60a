package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Forgetting says which data losses a plan may contain.
type Forgetting int

// The kinds of forgetting.
const (
	// Never: nodes keep their data.
	Never Forgetting = iota
	// Delayed: a node that forgot comes back only when all that it forgot has expired, at most a minority at a time.
	Delayed
	// One: a node that forgot comes back at once, as long as no other one forgets within two TTLs.
	One
	// Anytime: a node that forgot comes back at once, as long as not all nodes forget within one TTL.
	Anytime
	// Everybody: all nodes may forget at once.
	Everybody
)

// Limits is what a plan may contain.
type Limits struct {
	Nodes, Clients int
	TTL            time.Duration // the longest in use
	Length         time.Duration
	Faults         int
	Forget         Forgetting
	Jumps          bool    // clocks are set
	Vanish         bool    // locks vanish from nodes, as if evicted or deleted by a stranger; their counters stay
	Base           Weather // of all routes, when nothing else is said
}

// Plan is what goes wrong, in the order of time.
type Plan []Fault

// Fault is one thing that goes wrong. String says what.
type Fault struct {
	At   time.Duration
	What string
	do   func(w *World, d *dice)
}

func (f Fault) String() string { return fmt.Sprintf("%12v  %s", f.At, f.What) }

func (p Plan) String() string {
	var b strings.Builder
	for _, f := range p {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// Run arranges for all of it to happen.
func (w *World) Run(p Plan) {
	for i, f := range p {
		w.after(f.At, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.healed {
				return
			}
			if w.OnFault != nil {
				w.OnFault(w.now(), f.What)
			}
			f.do(w, diceFor(w.seed, 'f', uint64(i)))
		})
	}
}

// Heal ends everything that is wrong, for good: the network is fair, every node runs, and nothing else of the plan
// happens. Clocks run right again, from what they show.
func (w *World) Heal(latency time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = true
	for _, c := range w.clients {
		c.paused = min(c.paused, w.now())
		c.clock.pause(c.paused)
		c.clock.change(c.clock.line.mend)
		for _, r := range c.routes {
			*r = route{weather: Fair(latency)}
		}
	}
	for i, n := range w.nodes {
		if n.down {
			n.boot(n.data)
		}
		n.paused = 0
		n.line.mend(w.now())
		n.resume(diceFor(w.seed, 'h', uint64(i)))
	}
	if w.OnFault != nil {
		w.OnFault(w.now(), "everything is healed")
	}
}

// NewPlan draws a plan from the seed.
func NewPlan(seed uint64, l Limits) Plan {
	g := &planner{Limits: l, Rand: rand.New(rand.NewPCG(seed, 0x706c616e))}
	for range l.Faults {
		g.fault()
	}
	slices.SortStableFunc(g.plan, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return g.plan
}

// planner draws the faults of a plan.
type planner struct {
	Limits
	*rand.Rand
	plan    Plan
	losses  []loss
	crashes []loss // all times at which a node is down, so that they do not overlap
}

// loss is a time in which a node has lost its data.
type loss struct {
	node     int
	from, to time.Duration
}

func (g *planner) add(at time.Duration, what string, do func(*World, *dice)) {
	g.plan = append(g.plan, Fault{at, what, do})
}

// moment draws a time of the run, and span a length, mostly short.
func (g *planner) moment() time.Duration { return time.Duration(g.Float64() * float64(g.Length)) }

func (g *planner) span(longest time.Duration) time.Duration {
	f := g.Float64()
	return time.Duration(f*f*float64(longest)) + time.Millisecond
}

func (g *planner) fault() {
	at := g.moment()
	switch kind := g.IntN(20); {
	case kind < 5:
		g.storm(at)
	case kind < 9:
		g.partition(at)
	case kind < 12:
		g.pauseNode(at)
	case kind < 14:
		g.pauseClient(at)
	case kind < 18:
		g.crash(at)
	case kind == 18:
		g.hangUp(at)
	case g.Jumps:
		g.jump(at)
	default:
		g.flushScripts(at)
	}
	if g.Jumps && g.IntN(2) == 0 {
		g.jump(g.moment())
	}
	if g.Vanish {
		g.vanish(g.moment())
	}
}

// some draws a set of routes: one client's to one node, to all nodes, or all clients' to one node.
func (g *planner) some() (name string, routes func(w *World, f func(*route))) {
	client, node := g.IntN(g.Clients), g.IntN(g.Nodes)
	kind := g.IntN(4)
	switch kind {
	case 0:
		name = fmt.Sprintf("all clients and node %c", 'a'+node)
	case 1:
		name = fmt.Sprintf("client %d and all nodes", client)
	case 2:
		name = fmt.Sprintf("client %d and nodes up to %c", client, 'a'+node)
	default:
		name = fmt.Sprintf("client %d and node %c", client, 'a'+node)
	}
	return name, func(w *World, f func(*route)) {
		for _, c := range w.clients {
			for i, r := range c.routes {
				if kind == 0 && i == node || kind == 1 && c.id == client ||
					kind == 2 && c.id == client && i <= node || kind == 3 && c.id == client && i == node {
					f(r)
				}
			}
		}
	}
}

// storm makes the network bad for a while.
func (g *planner) storm(at time.Duration) {
	where, routes := g.some()
	bad := g.Base
	bad.Latency *= time.Duration(1 + g.IntN(20))
	bad.Tail, bad.LateBy = 0.3*g.Float64(), g.span(g.TTL)
	bad.LoseAsk, bad.LoseReply = 0.3*g.Float64(), 0.3*g.Float64()
	bad.Twice, bad.Reset, bad.Refuse = 0.2*g.Float64(), 0.1*g.Float64(), 0.2*g.Float64()
	length := g.span(2 * g.TTL)
	g.add(at, fmt.Sprintf("for %v a storm between %s: %+v", length, where, bad), func(w *World, _ *dice) {
		routes(w, func(r *route) { r.weather = bad })
	})
	g.add(at+length, "the end of the storm between "+where, func(w *World, _ *dice) {
		routes(w, func(r *route) { r.weather = g.Base })
	})
}

// partition keeps messages back, in one direction or both.
func (g *planner) partition(at time.Duration) {
	where, routes := g.some()
	length := g.span(2 * g.TTL)
	there, back := true, true
	way := "both ways"
	switch g.IntN(3) {
	case 0:
		there, way = false, "replies only"
	case 1:
		back, way = false, "requests only"
	}
	g.add(at, fmt.Sprintf("for %v a partition between %s, %s", length, where, way), func(w *World, _ *dice) {
		w.count.Partitions++
		routes(w, func(r *route) {
			if there {
				r.there = max(r.there, w.now()+length)
			}
			if back {
				r.back = max(r.back, w.now()+length)
			}
		})
	})
}

func (g *planner) pauseNode(at time.Duration) {
	node, length := g.IntN(g.Nodes), g.span(3*g.TTL/2)
	g.add(at, fmt.Sprintf("for %v node %c is stopped", length, 'a'+node), func(w *World, d *dice) {
		n := w.nodes[node]
		w.count.Pauses++
		life, until := n.life, w.now()+length
		n.paused = max(n.paused, until)
		w.after(length, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if n.life == life && n.paused <= until {
				n.resume(d)
			}
		})
	})
}

func (g *planner) pauseClient(at time.Duration) {
	client, length := g.IntN(g.Clients), g.span(3*g.TTL/2)
	length = min(length, g.Length-at) // who sleeps then does not hear that all is healed
	g.add(at, fmt.Sprintf("for %v client %d stands still", length, client), func(w *World, _ *dice) {
		w.clients[client].pause(length)
	})
}

func (g *planner) hangUp(at time.Duration) {
	node := g.IntN(g.Nodes)
	g.add(at, fmt.Sprintf("node %c closes all connections", 'a'+node), func(w *World, _ *dice) {
		for _, s := range append([]*session(nil), w.nodes[node].sessions...) {
			s.conn.breakOff()
		}
	})
}

func (g *planner) flushScripts(at time.Duration) {
	node := g.IntN(g.Nodes)
	g.add(at, fmt.Sprintf("SCRIPT FLUSH on node %c", 'a'+node), func(w *World, _ *dice) { clear(w.nodes[node].scripts) })
}

// vanish deletes the locks, and only them, on some nodes.
func (g *planner) vanish(at time.Duration) {
	var nodes []int
	for i, left := range g.Perm(g.Nodes) {
		if i == 0 || g.IntN(3) > 0 {
			nodes = append(nodes, left)
		}
	}
	slices.Sort(nodes)
	var names strings.Builder
	for _, i := range nodes {
		fmt.Fprintf(&names, " %c", 'a'+i)
	}
	g.add(at, "locks vanish from nodes"+names.String(), func(w *World, _ *dice) {
		for _, i := range nodes {
			maps.DeleteFunc(w.nodes[i].data, func(key string, _ *value) bool {
				lock := !strings.HasPrefix(key, "redquorum_")
				if lock {
					w.count.Vanished++
				}
				return lock
			})
		}
	})
}

// jump sets a clock: a node's in either direction, a client's forward, as a suspend does, or the rate of either.
func (g *planner) jump(at time.Duration) {
	by := time.Duration((g.Float64()*2 - 0.7) * 2 * float64(g.TTL))
	rate := 0.5 + g.Float64()
	node, client := g.IntN(g.Nodes), g.IntN(g.Clients)
	switch g.IntN(4) {
	case 0, 1:
		g.add(at, fmt.Sprintf("the clock of node %c jumps by %v", 'a'+node, by), func(w *World, _ *dice) {
			w.count.Jumps++
			w.nodes[node].line.jump(w.now(), by)
		})
	case 2:
		g.add(at, fmt.Sprintf("the clock of node %c runs at %.3f", 'a'+node, rate), func(w *World, _ *dice) {
			w.count.Jumps++
			w.nodes[node].line.spoil(w.now(), rate)
		})
	default:
		ahead := by.Abs()
		g.add(at, fmt.Sprintf("the clocks of client %d jump by %v, and run at %.3f", client, ahead, rate), func(w *World, _ *dice) {
			w.count.Jumps++
			c := w.clients[client].clock
			c.change(func(now time.Duration) { c.line.jump(now, ahead); c.line.spoil(now, rate); c.wall += by })
		})
	}
}
