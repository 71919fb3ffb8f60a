package scenario

import (
	"context"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/bench/internal/peers"
	"github.com/redquorum/redquorum/quorum"
)

func heldSteps(e *Env, p peers.Peer) []Step {
	switch {
	case p.NoLock:
		return nil
	case !p.Renews:
		return skipped("does not renew by itself")
	}
	// The TTL is redquorum's default. The window is a multiple of the time between two renewals of every client: a third
	// of the TTL, or half of it.
	leases, ttl, window := 10_000, quorum.DefaultTTL, 30*time.Second
	if e.Quick {
		leases, ttl, window = 500, 5*time.Second, 2600*time.Millisecond
	}
	if e.Nodes.Kind == nodes.Embedded {
		leases /= 10 // they take a millisecond for a script
	}
	s := Step{Peer: p}
	s.run = func(ctx context.Context, r *measure.Result) error {
		locker, err := p.Open(ctx, e.Nodes.URLs, ttl)
		if err != nil {
			return err
		}
		defer locker.Close()
		if err := warm(ctx, locker, heldAtOnce, distinct(e.name(r)+":warm")); err != nil {
			return err
		}
		before := measure.InUse()
		held, err := acquireAll(ctx, locker, e.name(r)+":held:", leases)
		if err == nil {
			inUse := measure.InUse()
			start, cpu := time.Now(), measure.CPU()
			select {
			case <-time.After(window):
			case <-ctx.Done():
			}
			r.Seconds = time.Since(start).Seconds()
			r.Held = &measure.Held{
				Leases:        leases,
				TTLSeconds:    ttl.Seconds(),
				CPUShare:      (measure.CPU() - cpu).Seconds() / r.Seconds,
				BytesPerLease: max(0, float64(inUse)-float64(before)) / float64(leases),
			}
		}
		lost := releaseAll(ctx, held)
		if r.Held != nil {
			r.Held.Lost = lost
		}
		return err
	}
	return []Step{s}
}

// heldAtOnce is how many are acquired, or released, at a time.
const heldAtOnce = 16

// acquireAll returns also what it has got before an error.
func acquireAll(ctx context.Context, locker peers.Locker, prefix string, n int) ([]peers.Lease, error) {
	held := make([]peers.Lease, n)
	var g errgroup.Group
	g.SetLimit(heldAtOnce)
	for i := range held {
		g.Go(func() error {
			var err error
			if held[i], err = locker.Lock(ctx, prefix+strconv.Itoa(i)); err != nil {
				held[i] = nil
			}
			return err
		})
	}
	return held, g.Wait()
}

// errNever is of a lease that was never had.
var errNever = errors.New("never acquired")

// releaseAll releases, and returns how many were held no longer.
func releaseAll(ctx context.Context, held []peers.Lease) (lost int) {
	ctx = context.WithoutCancel(ctx)
	errs := make([]error, len(held))
	var g errgroup.Group
	g.SetLimit(heldAtOnce)
	for i, l := range held {
		g.Go(func() error {
			errs[i] = errNever
			if l != nil {
				errs[i] = l.Release(ctx)
			}
			return nil
		})
	}
	_ = g.Wait() // they are in errs
	for _, err := range errs {
		if err != nil {
			lost++
		}
	}
	return lost
}
