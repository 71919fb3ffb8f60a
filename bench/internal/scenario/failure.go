package scenario

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/bench/internal/peers"
)

const (
	failureCallers = 8
	failureSlices  = 60

	// quickFailureTTL bounds how long rueidislock takes to release on a server that is gone: the whole TTL.
	quickFailureTTL = time.Second
)

// fault is something that is done to the nodes after a part of the time.
type fault struct {
	after float64
	what  string
	do    func(*nodes.Set) error
}

func hungSteps(e *Env, p peers.Peer) []Step {
	return failureSteps(e, p, []fault{
		{0.25, "node 1 hangs", func(s *nodes.Set) error { return s.Hang(0) }},
		{0.75, "node 1 goes on", func(s *nodes.Set) error { return s.Resume(0) }},
	})
}

func killedSteps(e *Env, p peers.Peer) []Step {
	return failureSteps(e, p, []fault{
		{0.33, "node 1 is killed", func(s *nodes.Set) error { return s.Kill(0) }},
		{0.66, "node 2 is killed", func(s *nodes.Set) error { return s.Kill(1) }},
	})
}

func failureSteps(e *Env, p peers.Peer, faults []fault) []Step {
	switch {
	case p.NoLock:
		return nil
	case !e.Nodes.Ours():
		return skipped(nodes.ErrNotOurs.Error())
	}
	s := Step{Peer: p, shape: measure.Result{Callers: failureCallers, Measured: pairLatency}}
	s.run = func(ctx context.Context, r *measure.Result) error {
		// Nodes of its own for each client, and for those that come after: a node that was killed would come back empty,
		// and not vote for a while.
		set, err := nodes.Start(e.Nodes.Kind)
		if err != nil {
			return err
		}
		defer set.Close()
		var ttl time.Duration
		if e.Quick && p.Single {
			ttl = quickFailureTTL
		}
		locker, err := p.Open(ctx, set.URLs, ttl)
		if err != nil {
			return err
		}
		defer locker.Close()
		name := distinct(e.name(r))
		if err := warm(ctx, locker, failureCallers, name); err != nil {
			return err
		}
		length := 2 * e.Duration
		recorder := measure.NewRecorder(length, failureSlices)
		var trouble errgroup.Group
		trouble.Go(func() error { return inflict(ctx, set, faults, length, recorder) })
		load{locker: locker, callers: failureCallers, name: name, length: length, ends: true, recorder: recorder}.run(ctx, r)
		err = trouble.Wait() // a server may take longer to end than a short run, and belongs on the timeline all the same
		r.Timeline = recorder.Timeline()
		return err
	}
	return []Step{s}
}

// inflict does to the nodes what is to be done, in time. What it began it ends, also when ctx does.
func inflict(ctx context.Context, set *nodes.Set, faults []fault, length time.Duration, r *measure.Recorder) error {
	start := time.Now()
	var errs []error
	for _, f := range faults {
		wait := time.NewTimer(time.Until(start.Add(time.Duration(f.after * float64(length)))))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		r.Event(f.what)
		errs = append(errs, f.do(set))
	}
	return errors.Join(errs...)
}
