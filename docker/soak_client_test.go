package docker_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/quorum"
)

// soaked is one client of a round.
type soaked struct {
	*round
	id       int
	locks    *quorum.Coordinator
	resource *history.Guarded
	forever  context.Context
	leases   sync.WaitGroup // whose end is not recorded yet
}

// caller is one goroutine of a client, with draws of its own.
type caller struct {
	*soaked
	*rand.Rand
}

func (c *soaked) begin(all *sync.WaitGroup) {
	c.run(all, 0, (*caller).keep)
	c.run(all, 1, (*caller).pester)
	for i := range soakWorkers {
		c.run(all, 2+i, (*caller).work)
	}
}

func (c *soaked) run(all *sync.WaitGroup, i int, what func(*caller)) {
	w := &caller{c, c.draws(100 + 10*c.id + i)}
	all.Go(func() {
		for !c.healed.Load() {
			what(w)
		}
	})
}

// keep has a lock through several faults. The watchdog renews it.
func (w *caller) keep() {
	if op, l := w.acquire(w.forever, soakNames[w.id], "keep", true); l != nil {
		w.hold(op, l, 3*soakTTL+upTo(w.Rand, 3*soakTTL), soakTTL/20)
	}
	time.Sleep(upTo(w.Rand, soakTTL/4))
}

// pester tries for locks that others hold, over and over. Whoever waits in earnest seldom asks in the few moments between
// a node's forgetting and its being told again; this is who must be kept out then.
func (w *caller) pester() {
	time.Sleep(upTo(w.Rand, soakTTL/25))
	if op, l := w.acquire(w.forever, w.name(), "try", false); l != nil {
		w.write(op, l)
		w.release(op, l)
	}
}

// work takes a lock for a while, and waits for it as long as it takes, or not that long.
func (w *caller) work() {
	time.Sleep(upTo(w.Rand, soakTTL/5))
	ctx, patient := w.forever, w.IntN(2) == 0
	if !patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, upTo(w.Rand, 2*soakTTL))
		defer cancel()
	}
	if op, l := w.acquire(ctx, w.name(), "acquire", patient); l != nil {
		w.hold(op, l, upTo(w.Rand, soakTTL/3), soakTTL/40)
	}
}

// last takes a lock when everything is well, which must succeed.
func (c *soaked) last(name string) {
	if op, l := c.acquire(c.forever, name, "acquire", true); l != nil {
		c.write(op, l)
		c.release(op, l)
	}
}

func (w *caller) name() string { return soakNames[w.IntN(len(soakNames))] }

// acquire asks for a lock, and records what comes of it. It returns nil without one, or with a lease that ended before
// anybody could believe in it.
func (c *soaked) acquire(ctx context.Context, name, how string, patient bool) (op int, l *quorum.Lease) {
	op = c.log.Ask(c.now(), strconv.Itoa(c.id), name, how, patient)
	var err error
	if how == "try" {
		l, err = c.locks.TryAcquire(ctx, name)
	} else {
		l, err = c.locks.Acquire(ctx, name)
	}
	// The time is read before the lease is looked at: so it was alive at that time, however long the look took. It is so
	// below, too.
	at := c.now()
	if err == nil {
		err = l.Err()
	}
	if err != nil {
		kind := history.Unknown
		if errors.Is(err, quorum.ErrNotAcquired) {
			kind = history.Refused
		}
		c.log.Record(history.Event{At: at, Kind: kind, Op: op, Detail: err.Error()})
		return op, nil
	}
	c.log.Record(history.Event{
		At: at, Kind: history.Granted, Op: op, Client: strconv.Itoa(c.id), Name: name, Holder: l.Holder(), Token: l.Token(),
	})
	c.leases.Go(func() {
		end := max(at, history.LastAlive(l, c.now))
		c.log.Record(history.Event{At: end, Kind: history.Ended, Op: op, Text: l.Err().Error()})
	})
	return op, l
}

// lost is how the history tells of a lease that was lost.
var lost = quorum.ErrLost.Error()

// write writes to what the locks protect.
func (c *soaked) write(op int, l *quorum.Lease) { c.resource.Write(strconv.Itoa(c.id), op, l) }

// believes records that the lease is alive, if it is.
func (c *soaked) believes(op int, l *quorum.Lease) bool {
	at := c.now()
	if l.Err() != nil {
		return false
	}
	c.log.Record(history.Event{At: at, Kind: history.Believed, Op: op})
	return true
}

// hold works under a lease, at every so often, and gives it back.
func (w *caller) hold(op int, l *quorum.Lease, length, every time.Duration) {
	for end := w.now() + length; w.now() < end && !w.healed.Load(); {
		time.Sleep(upTo(w.Rand, 2*every))
		if !w.believes(op, l) {
			break
		}
		switch w.IntN(16) {
		case 0:
			w.call(op, l, "renew", l.Renew)
		case 1:
			w.nest(op, l)
		case 2: // paused between the look and the act: the resource has to notice
			time.Sleep(upTo(w.Rand, soakTTL/2))
			fallthrough
		default:
			w.write(op, l)
		}
	}
	w.release(op, l)
}

// nest adds a hold, and gives it back.
func (w *caller) nest(outer int, l *quorum.Lease) {
	ctx, cancel := context.WithTimeout(l.Context(context.Background()), soakTTL)
	defer cancel()
	op, inner := w.acquire(ctx, l.Name(), "nested acquire", false)
	if inner == nil {
		return
	}
	w.write(op, inner)
	w.write(outer, l)
	w.release(op, inner)
}

func (c *soaked) release(op int, l *quorum.Lease) { c.call(op, l, "release", l.Release) }

// call renews or releases.
func (c *soaked) call(op int, l *quorum.Lease, what string, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), soakTTL)
	defer cancel()
	c.log.Record(history.Event{At: c.now(), Kind: history.Call, Op: op, Text: what})
	c.believes(op, l) // so that it ends by this call, and not before
	err := f(ctx)
	e := history.Event{At: c.now(), Kind: history.Return, Op: op, OK: err == nil, Text: what}
	if err != nil {
		e.Detail = err.Error()
	}
	c.log.Record(e)
}
