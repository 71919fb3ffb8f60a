package scenario

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/peers"
)

// afterError keeps a client that fails at once from doing nothing else.
const afterError = time.Millisecond

// comeBack is how long after the end a client may take for its last pair of a name that nobody else wants.
const comeBack = 2 * time.Second

// load is callers that acquire and release until the time is up.
type load struct {
	locker  peers.Locker
	callers int
	name    func(caller int) string
	length  time.Duration
	ends    bool // an acquire is ended when the time is up; otherwise it has its own time
	waits   bool // all want one name: the acquire alone is measured, and holders are counted

	recorder *measure.Recorder // may be nil
}

// distinct names the locks of callers that do not meet.
func distinct(prefix string) func(int) string {
	return func(caller int) string { return prefix + ":" + strconv.Itoa(caller) }
}

// same is one name for all.
func same(name string) func(int) string { return func(int) string { return name } }

func (l load) run(ctx context.Context, r *measure.Result) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var over atomic.Bool
	timer := time.AfterFunc(l.length, func() {
		over.Store(true)
		if l.ends {
			cancel() // not a deadline, which some clients make the lease's, too
		}
	})
	defer timer.Stop()
	// Some clients wait for ever where an answer was slow, or lost.
	var stuck atomic.Bool
	limit := time.AfterFunc(l.length+comeBack, func() {
		stuck.Store(true)
		cancel()
	})
	defer limit.Stop()

	var (
		callers  errgroup.Group
		inside   atomic.Int64
		overlaps atomic.Int64
		mu       sync.Mutex
		total    = measure.NewHistogram()
	)
	cost := measure.Start()
	for i := range l.callers {
		callers.Go(func() error {
			own, name := measure.NewHistogram(), l.name(i)
			var pairs, failed int64
			var first error
			for !over.Load() && ctx.Err() == nil {
				start := time.Now()
				lease, err := l.locker.Lock(ctx, name)
				took := time.Since(start)
				if err == nil {
					if l.waits {
						if inside.Add(1) > 1 {
							overlaps.Add(1)
						}
						inside.Add(-1)
					}
					err = lease.Release(context.WithoutCancel(ctx))
					if !l.waits {
						took = time.Since(start)
					}
				}
				tooLong := err != nil && !l.ends && stuck.Load()
				if ctx.Err() != nil && !tooLong {
					break // we ended it, or it comes too late to count
				}
				if l.recorder != nil {
					l.recorder.Record(took, err)
				}
				if err != nil {
					failed++
					if first == nil {
						first = err
					}
					time.Sleep(afterError)
					continue
				}
				pairs++
				own.Record(took)
			}
			total.Merge(own)
			mu.Lock()
			defer mu.Unlock()
			r.Pairs += pairs
			r.Errors += failed
			if r.FirstError == "" && first != nil {
				r.FirstError = first.Error()
			}
			return nil
		})
	}
	_ = callers.Wait() // errors are counted
	cost.Stop(r)
	if l.ends && r.Seconds > l.length.Seconds() { // some take long to end, and nothing counts by then
		r.Seconds = l.length.Seconds()
		r.PerSecond = float64(r.Pairs) / r.Seconds
	}
	r.Overlaps = overlaps.Load()
	r.Latency = total.Latency()
}

// warm makes connections, and has scripts loaded, by as many callers as there will be.
func warm(ctx context.Context, locker peers.Locker, callers int, name func(int) string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var g errgroup.Group
	for i := range callers {
		g.Go(func() error {
			for { // the first requests may be slow: connections are made, scripts loaded
				lease, err := locker.Lock(ctx, name(i))
				if err == nil {
					err = lease.Release(context.WithoutCancel(ctx))
				}
				if err == nil {
					return nil
				}
				if ctx.Err() != nil {
					return fmt.Errorf("warming up: %w", err)
				}
				time.Sleep(afterError)
			}
		})
	}
	return g.Wait()
}

const (
	pairLatency    = "acquire + release"
	acquireLatency = "acquire"
)

func loadStep(e *Env, p peers.Peer, callers int, hot bool) Step {
	s := Step{Peer: p, shape: measure.Result{Callers: callers, Measured: pairLatency}}
	if hot {
		s.shape.Measured = acquireLatency
	}
	s.run = func(ctx context.Context, r *measure.Result) error {
		locker, err := p.Open(ctx, e.Nodes.URLs, 0)
		if err != nil {
			return err
		}
		defer locker.Close()
		name := distinct(e.name(r))
		if err := warm(ctx, locker, callers, name); err != nil {
			return err
		}
		if hot {
			name = same(e.name(r))
		}
		load{locker: locker, callers: callers, name: name, length: e.Duration, ends: hot, waits: hot}.run(ctx, r)
		return nil
	}
	return s
}

func singleSteps(e *Env, p peers.Peer) []Step { return []Step{loadStep(e, p, 1, false)} }

func distinctSteps(e *Env, p peers.Peer) []Step {
	levels := []int{1, 4, 16, 64, 128}
	if e.Quick {
		levels = []int{1, 16} // more ask more of embedded nodes than they answer in time on a machine that has other work
	}
	var steps []Step
	for _, n := range levels {
		steps = append(steps, loadStep(e, p, n, false))
	}
	return steps
}

func hotSteps(e *Env, p peers.Peer) []Step {
	if p.NoLock {
		return nil
	}
	callers := 128
	if e.Quick {
		callers = 16
	}
	return []Step{loadStep(e, p, callers, true)}
}
