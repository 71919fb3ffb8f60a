package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/redquorum/redquorum/node/embedded"
)

const (
	embeddedNodes = 5
	// The two nodes that are killed, from 0. The first of them comes back.
	reborn, dead = 1, 3
)

// cluster is the nodes, and what becomes of them.
type cluster struct {
	urls []string
	own  *embedded.Cluster // nil if the servers are the user's

	killed, back int // what suffer did
}

func openCluster(cfg Config) (*cluster, error) {
	if len(cfg.Nodes) > 0 {
		return &cluster{urls: cfg.Nodes}, nil
	}
	own, err := embedded.Start(embeddedNodes)
	if err != nil {
		return nil, err
	}
	return &cluster{urls: own.URLs(), own: own}, nil
}

func (c *cluster) close() {
	if c.own != nil {
		c.own.Close()
	}
}

func (c *cluster) embedded() bool { return c.own != nil }

// tolerated is how many nodes may be down.
func (c *cluster) tolerated() int { return (len(c.urls) - 1) / 2 }

// String tells what the nodes are.
func (c *cluster) String() string {
	if c.embedded() {
		return fmt.Sprintf("%d embedded nodes", len(c.urls))
	}
	return fmt.Sprintf("%d nodes of yours", len(c.urls))
}

// invitation says what the user may do to servers of their own.
func (c *cluster) invitation() string {
	if c.tolerated() == 0 {
		return fmt.Sprintf("of %d it survives none, though; three survive one, five survive two.", len(c.urls))
	}
	return fmt.Sprintf("up to %d of %d may be down at a time (kill -9, kill -STOP, redis-cli shutdown nosave).",
		c.tolerated(), len(c.urls))
}

// suffer kills two nodes when a third of the stock is sold, and brings one back, empty, a TTL later: by then what it
// has forgotten has expired everywhere.
func (c *cluster) suffer(ctx context.Context, s *sale, ttl time.Duration, screen *screen) error {
	if !c.embedded() {
		return nil
	}
	select {
	case <-s.stock.Reached((s.stock.Tally().Initial + 2) / 3):
	case <-ctx.Done():
		return nil
	}
	for _, i := range []int{reborn, dead} {
		c.own.Stop(i)
		c.killed++
	}
	screen.say("  %s  nodes %d and %d killed", s.clock(), reborn+1, dead+1)
	comeback := time.NewTimer(ttl)
	defer comeback.Stop()
	select {
	case <-comeback.C:
	case <-ctx.Done():
		return nil
	}
	if err := c.own.Restart(reborn, false); err != nil {
		return fmt.Errorf("bringing node %d back: %w", reborn+1, err)
	}
	c.back++
	screen.say("  %s  node %d is back, empty", s.clock(), reborn+1)
	return nil
}

// fate sums up what became of the nodes: of embedded ones what was done to them, of others what was seen.
func (c *cluster) fate(seen []health) string {
	if c.embedded() {
		return fmt.Sprintf("%d killed, %d back empty", c.killed, c.back)
	}
	lost, back := 0, 0
	for _, n := range seen {
		if n.lost {
			lost++
			if !n.down {
				back++
			}
		}
	}
	if lost == 0 {
		return fmt.Sprintf("all %d up", len(seen))
	}
	return fmt.Sprintf("%d lost, %d back", lost, back)
}
