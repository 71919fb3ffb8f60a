package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/bench/internal/peers"
)

// beforeHandover is how long the waiting process has to begin to wait.
const beforeHandover = 20 * time.Millisecond

func handoverSteps(e *Env, p peers.Peer) []Step {
	if p.NoLock {
		return nil
	}
	s := handoverStep(p)
	s.run = func(ctx context.Context, r *measure.Result) error {
		return handOver(ctx, e, p, e.Nodes.URLs, r, func() error { return nil })
	}
	return []Step{s}
}

func handoverHungSteps(e *Env, p peers.Peer) []Step {
	switch {
	case p.NoLock:
		return nil
	case p.Single:
		return skipped("its one server would hang")
	case !e.Nodes.Ours():
		return skipped(nodes.ErrNotOurs.Error())
	case e.Quick && p.Name != peers.All()[0].Name:
		return skipped("not in a quick run: redsync takes half a minute")
	}
	s := handoverStep(p)
	s.run = func(ctx context.Context, r *measure.Result) (err error) {
		// Nodes of its own for each client: what one of them left on the node that hangs must not be in the next one's way.
		set, err := nodes.Start(e.Nodes.Kind)
		if err != nil {
			return err
		}
		defer set.Close()
		defer func() { err = errors.Join(err, set.Resume(0)) }()
		return handOver(ctx, e, p, set.URLs, r, func() error { return set.Hang(0) })
	}
	return []Step{s}
}

func handoverStep(p peers.Peer) Step {
	return Step{Peer: p, shape: measure.Result{Processes: 2, Measured: "hand-over"}}
}

// handOver has two processes take the lock from each other, once what is to happen to the nodes has happened; the first of them has
// the lock then.
func handOver(ctx context.Context, e *Env, p peers.Peer, urls []string, r *measure.Result, happens func() error) (err error) {
	both, err := startProcesses(ctx, r.Processes, orders{Peer: p.Name, URLs: urls, Name: e.name(r)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endProcesses(both)) }()
	took := measure.NewHistogram()
	holder, waiter := both[0], both[1]
	if _, err := holder.ask("lock"); err != nil {
		return err
	}
	if err := happens(); err != nil {
		return err
	}
	start := time.Now()
	for ; ctx.Err() == nil && time.Since(start) < e.Duration; holder, waiter = waiter, holder {
		if err := waiter.tell("lock"); err != nil {
			return err
		}
		time.Sleep(beforeHandover)
		released, err := holder.ask("unlock")
		if err != nil {
			return err
		}
		got, err := waiter.done()
		if err != nil {
			return err
		}
		if got.At < released.At {
			r.Overlaps++
		}
		took.Record(time.Duration(got.At - released.At))
		r.Pairs++
	}
	r.Seconds = time.Since(start).Seconds()
	r.Latency = took.Latency()
	_, err = holder.ask("unlock")
	return err
}
