package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// ErrNotExact is a locked sale that sold too much or too little, or let two workers in at once.
var ErrNotExact = errors.New("the sale with a lock was not exact")

// Run runs the demo and writes its progress and its verdict to out. It returns nil only if the locked sale was exact;
// an error that matches ErrNotExact if it was not; any other if the demo did not get to its end.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("not done within %v (--timeout)", cfg.Timeout))
	defer cancel()

	nodes, err := openCluster(cfg)
	if err != nil {
		return err
	}
	defer nodes.close()
	// It takes no lock, so its TTL does not matter. The default's node timeout is a generous one: a busy machine shall
	// not look like a dead node.
	view, err := quorum.Open(quorum.Config{}, nodes.urls...)
	if err != nil {
		return err
	}
	defer view.Close()
	d := &demo{
		cfg:    cfg,
		screen: newScreen(out),
		nodes:  nodes,
		view:   view,
		// A name of its own, so that the keys that are swept away at the end are nobody else's.
		name: "redquorum-demo:" + rand.Text()[:8],
	}
	return d.run(ctx)
}

// demo is one run of the whole.
type demo struct {
	cfg    Config
	screen *screen
	nodes  *cluster
	view   *quorum.Coordinator // only looks; the workers have their own
	name   string
}

// settles is how long the nodes may take to be ready: with a short TTL a machine that is busy starting them is late for all of
// their first answers.
const settles = 3 * time.Second

// ready waits until the nodes are ready for locks.
func (d *demo) ready(ctx context.Context) error {
	for deadline := time.Now().Add(settles); ; {
		err := d.view.Ping(ctx)
		if err == nil || ctx.Err() != nil || !time.Now().Before(deadline) {
			return err
		}
		time.Sleep(settles / 30)
	}
}

// run has one sale after the other.
func (d *demo) run(ctx context.Context) error {
	d.screen.say("%d items, sold by %d processes of %d workers; %s; TTL %v",
		d.cfg.Stock, d.cfg.Processes, d.cfg.Workers, d.nodes, d.cfg.TTL)
	if err := d.ready(ctx); err != nil {
		return unlessEnded(ctx, fmt.Errorf("the nodes are not ready for locks: %w", err))
	}

	d.screen.say("")
	d.screen.say("WITHOUT A LOCK each worker looks how many are left, thinks, and sells one.")
	unlocked, err := d.sell(ctx, "")
	if err != nil {
		return err
	}
	d.screen.say("  %s", unlocked.headline())

	d.screen.say("")
	d.screen.say("WITH A LOCK on %d of %d nodes it does so inside a lease, and shows the fencing token.",
		len(d.nodes.urls)/2+1, len(d.nodes.urls))
	if !d.nodes.embedded() {
		d.screen.say("  These servers are yours, so the demo kills none of them. Do it yourself while it runs:")
		d.screen.say("  %s", d.nodes.invitation())
	}
	locked, err := d.sell(ctx, d.name)
	left := d.sweep(ctx)
	if err != nil {
		d.screen.say("  %s", left)
		return err
	}
	d.screen.say("  %s", locked.headline())

	d.screen.say("")
	d.screen.say("%s", verdict(unlocked, locked, left))
	return errors.Join(locked.exact(), left.exact())
}

// unlessEnded returns err, or why ctx ended if it did: what fails then fails because of that.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
