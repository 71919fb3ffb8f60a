package demo

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/counter"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/stock"
)

// sale is one stock being sold.
type sale struct {
	stock *stock.Stock
	began time.Time
	watch *watch // of the nodes; nil without a lock
}

// result is a sale that is over.
type result struct {
	stock.Tally
	took time.Duration
	dead int    // worker processes that ended too early
	fate string // of the nodes
}

// sell sells a new stock, with the lock called name, or without one if that is empty.
func (d *demo) sell(ctx context.Context, name string) (result, error) {
	s := &sale{stock: stock.New(d.cfg.Stock), began: time.Now()}
	around, done := context.WithCancel(ctx)
	var beside errgroup.Group // what goes on beside the selling
	if name != "" {
		s.watch = newWatch(d.nodes)
		beside.Go(func() error { s.watch.run(around, d); return nil })
		beside.Go(func() error { return d.nodes.suffer(around, s, d.cfg.TTL, d.screen) })
	}
	beside.Go(func() error { d.screen.show(around, s); return nil })

	died := make([]error, d.cfg.Processes)
	var processes errgroup.Group
	for i := range died {
		processes.Go(func() error {
			died[i] = employ(ctx, d.cfg.Worker, s.stock, counter.Job{
				Process: i + 1, Workers: d.cfg.Workers, Think: d.cfg.think(),
				Lock: name, Nodes: d.nodes.urls, TTL: d.cfg.TTL,
			})
			return nil
		})
	}
	_ = processes.Wait() // the errors are in died
	r := result{Tally: s.stock.Tally(), took: time.Since(s.began)}
	done()
	err := beside.Wait()
	if s.watch != nil {
		r.fate = d.nodes.fate(s.watch.view())
	}
	for _, e := range died {
		if e != nil {
			r.dead++
		}
	}
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil:
		return r, err
	case r.dead == len(died):
		return r, errors.Join(died...)
	}
	// A process that died is no reason to give up: that the others can go on is what locks with a TTL are for.
	for _, e := range died {
		if e != nil {
			d.screen.say("  %v", e)
		}
	}
	return r, nil
}
