package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Cached keeps a reading of a clock and renews it in the background, so that starting an attempt costs
// no system call.
//
// It is deliberately no [Clock]. A cached reading is earlier than the truth or equal to it: by the
// interval of the updater as a rule, and by any amount if the updater was starved, the machine
// suspended, or Cached closed. As the start of a validity window that is safe, because a window
// that started earlier ends earlier. As a now it is deadly: a lease that has ended would look alive for
// as long as the reading is stale. So Cached offers [Cached.Start] and nothing else.
type Cached struct {
	src  Clock
	last atomic.Int64 // Instant.ns

	stop    chan struct{}
	stopped sync.Once
	done    chan struct{}
}

// NewCached returns a Cached that reads src now and then again after each interval, which bounds how
// stale it is while its goroutine gets to run. It panics unless every is positive. It must be closed.
func NewCached(src Clock, every time.Duration) *Cached {
	if every <= 0 {
		panic("clock: NewCached: the interval must be positive, got " + every.String())
	}
	c := &Cached{src: src, stop: make(chan struct{}), done: make(chan struct{})}
	c.last.Store(src.Now().ns)
	go c.update(every)
	return c
}

// Start returns an Instant at or before the present, from which a validity window may be counted.
// It never goes back.
func (c *Cached) Start() Instant { return Instant{c.last.Load()} }

// Close ends the updates and returns when the goroutine has ended. Start stands still from then on.
// Closing again is allowed.
func (c *Cached) Close() {
	c.stopped.Do(func() { close(c.stop) })
	<-c.done
}

func (c *Cached) update(every time.Duration) {
	defer close(c.done)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.last.Store(c.src.Now().ns) // the only writer, so Start cannot go back
		case <-c.stop:
			return
		}
	}
}
