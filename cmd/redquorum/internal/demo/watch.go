package demo

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lookEvery is the pause between two looks. A look itself takes as long as the slowest node, at most its timeout.
const lookEvery = 100 * time.Millisecond

// watch looks at the nodes from outside. What it shows is what it has seen, and not what was done to them.
type watch struct {
	mu    sync.Mutex
	nodes []health
}

// health is what was seen of a node.
type health struct {
	down bool // it does not answer
	lost bool // there was a time when it did not
}

func newWatch(c *cluster) *watch { return &watch{nodes: make([]health, len(c.urls))} }

// run looks until ctx ends.
func (w *watch) run(ctx context.Context, d *demo) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		state, _ := d.view.Inspect(ctx, d.name) // each node has its own error
		if ctx.Err() != nil {
			return
		}
		for i, n := range state.Nodes {
			if changed, down := w.saw(i, n.Err == nil); changed && !d.nodes.embedded() {
				if down {
					d.screen.say("  node %d (%s) does not answer any more", i+1, n.Node)
				} else {
					d.screen.say("  node %d (%s) answers again", i+1, n.Node)
				}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// saw takes in whether node i answered, and returns whether that changed its state.
func (w *watch) saw(i int, answered bool) (changed, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.nodes[i]
	was := n.down
	n.down = !answered
	n.lost = n.lost || n.down
	return n.down != was, n.down
}

// view returns what was seen so far.
func (w *watch) view() []health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}
