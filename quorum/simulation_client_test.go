package quorum_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/quorum"
)

// process is one client of a run, be it in a simulated world or over real servers.
type process struct {
	*schedule
	id   int
	c    *quorum.Coordinator
	log  *history.Recorder
	res  *history.Guarded
	dead atomic.Bool

	// What is different from world to world.
	now     func() time.Duration              // since the start of the run
	sleep   func(time.Duration)               // and longer while the client is paused
	done    func() bool                       // tells whether the run comes to its end
	outlive func(*quorum.Lease) time.Duration // waits for the end of a lease, and returns when it was
	vanish  func()                            // lets nothing of it get out any more; nil: it does not die
	leases  sync.WaitGroup                    // whose end is not recorded yet
}

func (p *process) name() string { return strconv.Itoa(p.id) }

// holder is what its holders begin with.
func (p *process) holder() string { return "client" + p.name() }

// over tells whether it is time to come to an end.
func (p *process) over() bool { return p.dead.Load() || p.done() }

// caller is one goroutine of a process, with draws of its own.
type caller struct {
	*process
	*rand.Rand
}

// about draws a time.
func (w *caller) about(mean time.Duration) time.Duration {
	return min(time.Duration(w.ExpFloat64()*float64(mean)), 5*mean) + time.Duration(w.IntN(1000))
}

// work takes locks until the time is over.
func (p *process) work(i int) {
	w := &caller{p, rand.New(rand.NewPCG(p.seed, uint64(1000+100*p.id+i)))}
	for {
		p.sleep(w.about(p.ttl / 10))
		if p.over() {
			return
		}
		if name := p.names[w.IntN(len(p.names))]; w.forced && w.IntN(5) == 0 {
			w.force(name)
		} else {
			w.once(name)
		}
	}
}

// once takes a lock once, in one of many ways.
func (w *caller) once(name string) {
	var opts []quorum.Option
	if w.IntN(5) == 0 {
		opts = append(opts, quorum.WithLeaseTime(w.ttl/3+time.Duration(w.Float64()*float64(w.ttl)*2/3)))
	}
	how, patient, limit := "acquire", false, w.about(2*w.ttl)
	switch w.IntN(8) {
	case 0, 1:
		how, limit = "try", w.ttl
	case 2:
		how, limit = "wait", 10*w.ttl
		opts = append(opts, quorum.WithWaitTime(time.Duration(w.IntN(2))*w.about(w.ttl)))
	case 3, 4:
		patient, limit = true, w.forever()
	case 5:
		how = "do"
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	op := w.log.Ask(w.now(), w.name(), name, how, patient)
	var l *quorum.Lease
	var err error
	switch how {
	case "try":
		l, err = w.c.TryAcquire(ctx, name, opts...)
	case "do":
		began := false
		err = w.c.Do(ctx, name, func(ctx context.Context) error {
			began = true
			if l := quorum.LeaseFrom(ctx); w.granted(op, l) {
				w.hold(ctx, op, l)
			}
			return nil
		}, opts...)
		if began {
			return
		}
	default:
		l, err = w.c.Acquire(ctx, name, opts...)
	}
	if err != nil {
		w.failed(op, err)
		return
	}
	if w.granted(op, l) {
		w.hold(l.Context(context.Background()), op, l)
		w.end(op, l)
	}
}

// forever is how long a patient client waits: only in a test that has failed does it come to that.
func (p *process) forever() time.Duration { return max(0, p.length-p.now()) + 2*p.patience() }

// last takes a lock when everything is well, which must succeed.
func (p *process) last(name string) {
	if p.dead.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.forever())
	defer cancel()
	op := p.log.Ask(p.now(), p.name(), name, "acquire", true)
	l, err := p.c.Acquire(ctx, name)
	if err != nil {
		p.failed(op, err)
		return
	}
	if p.granted(op, l) {
		p.res.Write(p.name(), op, l)
		p.release(op, l)
	}
}

func (p *process) failed(op int, err error) {
	kind := history.Unknown
	if errors.Is(err, quorum.ErrNotAcquired) {
		kind = history.Refused
	}
	p.log.Record(history.Event{At: p.now(), Kind: kind, Op: op, Detail: err.Error()})
}

// granted records a grant, and its end when that comes. It returns false for a lease that ended before anybody could
// believe in it: where time goes on by itself that may be.
//
// Here and below the time is read before the lease is looked at: so it was alive at that time, however long the look took.
func (p *process) granted(op int, l *quorum.Lease) bool {
	at := p.now()
	if err := l.Err(); err != nil {
		p.failed(op, err)
		return false
	}
	p.log.Record(history.Event{
		At: at, Kind: history.Granted, Op: op, Client: p.name(), Name: l.Name(), Holder: l.Holder(), Token: l.Token(),
	})
	p.leases.Go(func() {
		end := max(at, p.outlive(l))
		p.log.Record(history.Event{At: end, Kind: history.Ended, Op: op, Text: l.Err().Error()})
	})
	return true
}

// believes records that the lease is alive, if it is.
func (p *process) believes(op int, l *quorum.Lease) bool {
	at := p.now()
	if l.Err() != nil {
		return false
	}
	p.log.Record(history.Event{At: at, Kind: history.Believed, Op: op})
	return true
}

// hold works under a lease.
func (w *caller) hold(ctx context.Context, op int, l *quorum.Lease) {
	length := w.about(w.ttl / 10)
	switch w.IntN(6) {
	case 0, 1:
		length = time.Duration(w.Float64() * w.longest * float64(w.ttl))
	case 2, 3: // so short that it may be handed on within the process
		w.write(op, l)
		return
	}
	for end := w.now() + length; w.now() < end && !w.over(); {
		w.sleep(w.about(length / 3))
		switch w.IntN(8) {
		case 0:
			w.call(op, l, "renew", l.Renew)
		case 1:
			w.nest(ctx, op, l)
		case 2:
			if w.IntN(10) == 0 {
				w.die()
			}
			if w.forced && w.IntN(3) == 0 || w.IntN(10) == 0 && w.set {
				w.force(l.Name())
			}
		default:
			w.write(op, l)
		}
	}
	w.write(op, l)
}

// write looks at the lease and then writes, sometimes much later.
func (w *caller) write(op int, l *quorum.Lease) {
	if !w.believes(op, l) {
		return
	}
	pause := w.about(2 * w.latency)
	if w.IntN(10) == 0 && !w.over() {
		pause = w.about(w.ttl)
	}
	w.sleep(pause)
	w.res.Write(w.name(), op, l)
}

// nest adds a hold, and gives it back now or after the other.
func (w *caller) nest(ctx context.Context, outer int, l *quorum.Lease) {
	ctx, cancel := context.WithTimeout(ctx, w.about(w.ttl))
	defer cancel()
	op := w.log.Ask(w.now(), w.name(), l.Name(), "nested acquire", false)
	inner, err := w.c.Acquire(ctx, l.Name())
	if err != nil {
		w.failed(op, err)
		return
	}
	if !w.granted(op, inner) {
		return
	}
	w.write(op, inner)
	if inner.Holder() != l.Holder() {
		// The lease ended just before: this is a lock of its own.
		w.release(op, inner)
		return
	}
	w.write(outer, l)
	w.release(op, inner)
}

// end gives the lease back, or leaves it to its end.
func (w *caller) end(op int, l *quorum.Lease) {
	if w.IntN(12) == 0 && !w.over() {
		select {
		case <-l.Done():
			return
		case <-time.After(w.about(w.ttl)):
		}
	}
	w.release(op, l)
}

func (p *process) release(op int, l *quorum.Lease) {
	p.call(op, l, "release", l.Release)
}

// call renews or releases.
func (p *process) call(op int, l *quorum.Lease, what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.ttl)
	defer cancel()
	p.log.Record(history.Event{At: p.now(), Kind: history.Call, Op: op, Text: what})
	p.believes(op, l) // so that it ends by this call, and not before
	err := f(ctx)
	e := history.Event{At: p.now(), Kind: history.Return, Op: op, OK: err == nil, Text: what}
	if err != nil {
		e.Detail = err.Error()
	}
	p.log.Record(e)
}

// die ends the process without a word.
func (w *caller) die() {
	if w.vanish == nil || w.now()+3*w.nodeTimeout > w.length || w.dead.Swap(true) {
		return
	}
	w.log.Record(history.Event{At: w.now(), Kind: history.Note, Text: "client " + w.name() + " dies"})
	w.vanish()
	_ = w.c.Close() // for its goroutines: nothing of it gets out any more
}

// force frees the lock under its holder.
func (w *caller) force(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), w.ttl)
	defer cancel()
	_, err := w.c.ForceRelease(ctx, name)
	e := history.Event{At: w.now(), Kind: history.Note, Text: "force-release of " + name}
	if err != nil {
		e.Detail = err.Error()
	}
	w.log.Record(e)
}
