package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/testcontainers/testcontainers-go"
	"golang.org/x/sync/errgroup"
)

// Persistence is what a node keeps on its disk.
type Persistence int

const (
	// None keeps nothing: a node that is restarted has forgotten what it granted.
	None Persistence = iota
	// Always keeps all: every write is on the disk before its reply is sent, also
	// while the file is being rewritten (appendfsync always,
	// no-appendfsync-on-rewrite no).
	Always
)

// Options say what nodes to start. The zero value is nodes without persistence,
// from the image that there is.
type Options struct {
	// Image is the image of Redis to run, 7.0 or later. Default:
	// $REDQUORUM_REDIS_IMAGE, else [LocalImage] if it was built here, else
	// redis:7.2-alpine.
	Image string
	// Persistence of all nodes. Default: None.
	Persistence Persistence
}

// Cluster is a set of independent nodes. Its methods may be called from several
// goroutines at once, also for the same node.
type Cluster struct {
	engine   *testcontainers.DockerClient
	nodes    []*node
	lifeline *lifeline
}

// ErrClosed is returned once the cluster is closed.
var ErrClosed = errors.New("docker: cluster is closed")

// callTimeout bounds one step of an engine that is busy.
const callTimeout = 2 * time.Minute

// Start starts n empty nodes, n at least 1, and returns when all of them answer; ctx
// bounds the starting only. Close ends them. Without an engine it is ErrNoEngine.
func Start(ctx context.Context, n int, opts Options) (*Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("docker: Start of %d nodes: a cluster has at least 1", n)
	}
	if opts.Persistence != None && opts.Persistence != Always {
		return nil, fmt.Errorf("docker: Persistence(%d): want None or Always", opts.Persistence)
	}
	engine, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	if opts.Image == "" {
		opts.Image = chooseImage(ctx, engine)
	}
	label := uuid.NewString()
	c := &Cluster{engine: engine}
	if c.lifeline, err = tie(engine.DaemonHost(), label); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for range n {
		gate, err := newGate()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("docker: %w", err), c.Close())
		}
		c.nodes = append(c.nodes, &node{engine: engine, options: opts, label: label, gate: gate})
	}
	var starting errgroup.Group
	for _, n := range c.nodes {
		starting.Go(func() error { return n.restart(ctx, false) })
	}
	if err := starting.Wait(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// URLs are the nodes' addresses, redis://127.0.0.1:port each, in the order of
// their indices. A node keeps its address for as long as the cluster lives.
func (c *Cluster) URLs() []string {
	urls := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		urls[i] = "redis://" + n.gate.port.Addr()
	}
	return urls
}

// Containers are the ids of the nodes' containers, for docker logs or docker exec.
// A node that is restarted without its data gets another one if it persists.
func (c *Cluster) Containers() []string {
	ids := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		ids[i] = n.id()
	}
	return ids
}

// Pause freezes node i (docker pause): it accepts connections and requests, and
// answers none until Unpause. Pausing a node that is paused or down is an error.
func (c *Cluster) Pause(i int) error { return c.do("pausing", i, (*node).pause) }

// Unpause lets a paused node go on: it carries out what reached it in the meantime,
// however late that is.
func (c *Cluster) Unpause(i int) error { return c.do("unpausing", i, (*node).unpause) }

// Stop ends node i in order (SIGTERM). Its connections break, new ones are refused.
// A node that is down is left so.
func (c *Cluster) Stop(i int) error { return c.do("stopping", i, (*node).stop) }

// Kill ends node i with SIGKILL, paused or not: nothing is flushed, nobody is told.
// Its connections break, new ones are refused. A node that is down is left so.
func (c *Cluster) Kill(i int) error { return c.do("killing", i, (*node).kill) }

// Restart starts node i again at its address, after killing it if it runs, and
// returns when it answers.
//
// Without keepData it has forgotten all it ever granted. With keepData it reads what
// it had written to its disk, which only nodes with persistence have.
func (c *Cluster) Restart(i int, keepData bool) error {
	return c.do("restarting", i, func(n *node, ctx context.Context) error { return n.restart(ctx, keepData) })
}

// Partition cuts node i off its clients: nothing that either side sends arrives,
// and nobody is told. Connections are not broken, they hang. New ones are accepted,
// where a real network would have kept their clients waiting for that, and hang.
//
// Heal delivers what was under way, in order, as TCP does when a network is back.
// That includes the requests of clients that have closed their connections since,
// but not those of clients that have reset them (SO_LINGER 0).
//
// A partition belongs to the network, not to the server: it outlasts Kill and
// Restart, and clients hear of neither until Heal.
func (c *Cluster) Partition(i int) error { return c.withhold(i, true, true) }

// CutRequests cuts one way only: what clients send does not reach node i, what it
// sends (a message that others cause) still arrives. Else it is as Partition.
func (c *Cluster) CutRequests(i int) error { return c.withhold(i, true, false) }

// CutReplies cuts one way only: node i carries out what clients send, and they hear
// nothing of it. Else it is as Partition.
func (c *Cluster) CutReplies(i int) error { return c.withhold(i, false, true) }

// Heal ends a partition, of whichever kind. A node that is not cut off is left as
// it is.
func (c *Cluster) Heal(i int) error { return c.withhold(i, false, false) }

func (c *Cluster) withhold(i int, toNode, toClients bool) error {
	return c.do("partitioning", i, func(n *node, _ context.Context) error { return n.gate.withhold(toNode, toClients) })
}

// Close removes all nodes for good, with their containers and volumes. What cannot
// be removed is an error. Closing twice is fine.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	errs := make([]error, len(c.nodes))
	var closing errgroup.Group
	for i, n := range c.nodes {
		closing.Go(func() error {
			errs[i] = n.close(ctx)
			return nil
		})
	}
	_ = closing.Wait()
	err := errors.Join(errs...)
	if err == nil {
		c.lifeline.cut() // else it tries again when the process is gone
	}
	return errors.Join(err, c.engine.Close())
}

// do runs one step on one node, within a bound that a working engine never meets.
func (c *Cluster) do(doing string, i int, step func(*node, context.Context) error) error {
	if i < 0 || i >= len(c.nodes) {
		return fmt.Errorf("docker: %s node %d of %d: indices run from 0 to %d", doing, i, len(c.nodes), len(c.nodes)-1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if err := step(n, ctx); err != nil {
		return fmt.Errorf("docker: %s node %d: %w", doing, i, err)
	}
	return nil
}
