package renew

import (
	"container/heap"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/clock"
)

// A Lease is what a Watchdog watches. Its methods are called from the watchdog's goroutine, one at a time, and must
// not block: they start work, they do not do it.
type Lease interface {
	// Renew is called when the renewal is due. There is no other call before the next [Watch.Set].
	Renew()
	// Expire is called when the end has come, unless the watch was stopped or moved before.
	Expire()
}

// A Watchdog calls leases back when they are due. It is safe for concurrent use.
type Watchdog struct {
	clock clock.Clock
	group errgroup.Group

	mu      sync.Mutex
	queue   queue
	running bool
	closed  bool
	armed   clock.Instant // when run looks again at the latest; zero while it waits for a lease
	changed chan struct{} // run has to look before that, or the watchdog is closed; buffered 1
}

// A lease is renewed sooner when another one is due, by a part of the time that is left to it: so many leases share a few
// round trips of each node, 100 ms of them with a TTL of 30 s. They stay as spread over time as their grants were. It is never
// more than that: where a lease of an hour repeats what failed, a part of the hour would be longer than the pauses between.
const (
	together     = 200
	mostTogether = 100 * time.Millisecond
)

// NewWatchdog returns a watchdog on a clock. It starts nothing before the first lease.
func NewWatchdog(clk clock.Clock) *Watchdog {
	return &Watchdog{clock: clk, changed: make(chan struct{}, 1)}
}

// A Watch is one lease under watch.
type Watch struct {
	dog   *Watchdog
	lease Lease

	// Guarded by dog.mu.
	renewAt clock.Instant // zero: no renewal is due before the next Set
	end     clock.Instant
	index   int // in the queue; -1 if it is not there
}

// next is when the watch wants to be looked at.
func (w *Watch) next() clock.Instant {
	if w.renewAt.IsZero() {
		return w.end
	}
	return clock.Earlier(w.renewAt, w.end)
}

// soon tells whether the renewal is as good as due.
func (w *Watch) soon(now clock.Instant) bool {
	return !w.renewAt.IsZero() && !now.Before(w.renewAt.Add(-min(w.end.Sub(w.renewAt)/together, mostTogether)))
}

// Watch begins to watch a lease that ends at end and shall be renewed at renewAt; the zero Instant means never.
func (d *Watchdog) Watch(lease Lease, renewAt, end clock.Instant) *Watch {
	w := &Watch{dog: d, lease: lease, index: -1}
	w.Set(renewAt, end)
	return w
}

// Set changes both times. A time that is past is due at once. A watch that was stopped, or has ended, begins anew.
func (w *Watch) Set(renewAt, end clock.Instant) {
	d := w.dog
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	w.renewAt, w.end = renewAt, end
	if w.index < 0 {
		heap.Push(&d.queue, w)
	} else {
		heap.Fix(&d.queue, w.index)
	}
	if !d.running {
		d.running = true
		d.group.Go(d.run)
	}
	if w.index == 0 && (d.armed.IsZero() || w.next().Before(d.armed)) {
		d.notify()
	}
}

// Stop ends the watch. A callback that has begun may still be running when it returns.
func (w *Watch) Stop() {
	d := w.dog
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&d.queue, w.index)
	}
}

// Close stops every watch and joins the goroutine. It is idempotent, and must not be called from a callback.
func (d *Watchdog) Close() {
	d.mu.Lock()
	d.closed = true
	for _, w := range d.queue {
		w.index = -1
	}
	d.queue = nil
	d.notify()
	d.mu.Unlock()
	_ = d.group.Wait() // returns no error
}

// notify wakes run. It is called with d.mu held.
func (d *Watchdog) notify() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *Watchdog) run() error {
	alarm := d.clock.NewAlarm()
	defer alarm.Stop()
	for {
		next, ok := d.callDue()
		if !ok {
			return nil
		}
		if !next.IsZero() {
			alarm.Set(next)
		}
		select {
		case <-alarm.C():
		case <-d.changed:
		}
	}
}

// callDue makes all the calls that are due and returns when the next one is; zero if there is none. It returns false
// once the watchdog is closed.
func (d *Watchdog) callDue() (next clock.Instant, ok bool) {
	renewing := false
	for {
		d.mu.Lock()
		d.armed = clock.Instant{}
		if d.closed {
			d.mu.Unlock()
			return clock.Instant{}, false
		}
		if len(d.queue) == 0 {
			d.mu.Unlock()
			return clock.Instant{}, true
		}
		w, now := d.queue[0], d.clock.Now()
		if now.Before(w.next()) && (!renewing || !w.soon(now)) {
			next = w.next()
			d.armed = next
			d.mu.Unlock()
			return next, true
		}
		// The end goes first: a lease that is over is not renewed.
		call := w.lease.Renew
		if now.Before(w.end) {
			renewing = true
			w.renewAt = clock.Instant{}
			heap.Fix(&d.queue, w.index)
		} else {
			call = w.lease.Expire
			heap.Remove(&d.queue, w.index)
		}
		d.mu.Unlock()
		call() // without the lock: the lease will want to Set
	}
}

// queue is a heap of watches, the next one first.
type queue []*Watch

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].next().Before(q[j].next()) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	w := x.(*Watch)
	w.index = len(*q)
	*q = append(*q, w)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.index = -1
	return w
}
