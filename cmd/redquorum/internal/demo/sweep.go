package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/internal/direct"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// remains is what was left of the lock on the nodes.
type remains struct {
	held   int // nodes that have the lock's key
	free   int // nodes that have not
	silent int // nodes that do not answer
}

// exact returns an error that matches ErrNotExact if a node has kept the lock.
func (r remains) exact() error {
	if r.held > 0 {
		return fmt.Errorf("%w: %s", ErrNotExact, r)
	}
	return nil
}

// String says it in a few words.
func (r remains) String() string {
	switch {
	case r.free+r.held == 0:
		return "no node answers: what the lock left there expires by itself"
	case r.held > 0:
		return fmt.Sprintf("the lock's key is still on %d nodes; it expires within its TTL", r.held)
	case r.silent > 0:
		return fmt.Sprintf("no lock left on %d nodes, %d down", r.free, r.silent)
	}
	return fmt.Sprintf("no lock left on %d nodes", r.free)
}

// sweep waits until the lock is gone from every node that answers, and removes the fencing tokens, which would stay for
// a day. It does so after an interrupt, too.
//
// Nobody else may do the latter: a name whose tokens are gone begins anew. This one is never used again.
func (d *demo) sweep(ctx context.Context) remains {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.TTL+time.Second)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var r remains
	for {
		state, err := d.view.Inspect(ctx, d.name)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if r = count(state); r.held == 0 {
			break
		}
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	if !d.nodes.embedded() {
		d.forgetTokens()
	}
	return r
}

func count(state quorum.State) (r remains) {
	for _, n := range state.Nodes {
		switch {
		case n.Err != nil:
			r.silent++
		case n.Held:
			r.held++
		default:
			r.free++
		}
	}
	return r
}

// forgetTokens removes the lock's other keys. On a node that does not answer they expire by themselves.
func (d *demo) forgetTokens() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var nodes errgroup.Group
	for _, url := range d.nodes.urls {
		nodes.Go(func() error {
			opts, err := redis.ParseURL(url)
			if err != nil {
				return err
			}
			opts.MaxRetries = -1
			client := direct.New(opts) // prints nothing about a node that is down
			defer client.Close()
			return client.Del(ctx, script.FenceKey(d.name), script.RevokedKey(d.name)).Err()
		})
	}
	_ = nodes.Wait() // there is nothing to be done about it
}
