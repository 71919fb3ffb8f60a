package simulation

import (
	"fmt"
	"time"
)

// crash ends a node and starts it again, with the data that the limits allow.
func (g *planner) crash(at time.Duration) {
	node := g.IntN(g.Nodes)
	length := g.span(g.TTL)
	data, wait := g.IntN(3), length // kept, an older state, or none
	if !g.mayForget(node, at, &wait) || at+wait > g.Length {
		data = 0 // whatever is down at the end of the plan is started then
	}
	if data != 0 {
		length = wait
	}
	for _, other := range g.crashes {
		if other.node == node && at <= other.to && at+length >= other.from {
			return // it is down then
		}
	}
	g.crashes = append(g.crashes, loss{node, at, at + length})
	if data != 0 {
		g.losses = append(g.losses, loss{node, at, at + length})
	}
	how := []string{"with its data", "with data of some time before", "empty"}[data]
	if data == 2 && g.Forget >= One && g.IntN(3) == 0 {
		g.add(at, fmt.Sprintf("FLUSHALL on node %c", 'a'+node), func(w *World, _ *dice) {
			w.count.DataLosses++
			clear(w.nodes[node].data)
		})
		return
	}
	if data == 1 {
		before := max(0, at-g.span(2*g.TTL))
		g.add(before, fmt.Sprintf("node %c writes a snapshot", 'a'+node), func(w *World, _ *dice) {
			w.nodes[node].saved = w.nodes[node].data.copy()
		})
	}
	g.add(at, fmt.Sprintf("node %c crashes, to start again after %v %s", 'a'+node, length, how), func(w *World, _ *dice) {
		n := w.nodes[node]
		w.count.Crashes++
		n.crash()
		switch data {
		case 1:
			w.count.DataLosses++
			if n.data = n.saved; n.data == nil {
				n.data = store{}
			} else {
				w.count.Snapshots++
			}
			n.data = n.data.copy()
		case 2:
			w.count.DataLosses++
			n.data = store{}
		}
		w.after(length, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if n.down {
				n.boot(n.data)
			}
		})
	})
}

// mayForget tells whether the node may lose its data at this time, and makes the outage as long as that takes.
func (g *planner) mayForget(node int, at time.Duration, length *time.Duration) bool {
	window, most := g.TTL, 0
	switch g.Forget {
	case Never:
		return false
	case Delayed:
		// 2 % more for a node's clock and a client's that run apart, and a little for rounding.
		*length += g.TTL + g.TTL/50 + 10*time.Millisecond
		window, most = g.TTL+*length, (g.Nodes-1)/2
	case One:
		window, most = 2*g.TTL+g.TTL/25+*length, 1
	case Anytime:
		window, most = g.TTL+g.TTL/50+*length, g.Nodes-1
	case Everybody:
		most = g.Nodes
	}
	others := map[int]bool{node: true}
	for _, l := range g.losses {
		if at+*length+window >= l.from && at <= l.to+window {
			others[l.node] = true
		}
	}
	return len(others) <= most
}
