package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/renew"
)

// A Coordinator takes locks across a fixed set of nodes. One per process is enough; it is safe for concurrent use.
type Coordinator struct {
	cfg   Config
	nodes []*voter
	need  int // the quorum
	clock clock.Clock
	log   *slog.Logger
	trace tracers

	id      string // of this client; with a number it makes a holder
	holders atomic.Uint64
	random  func() float64 // in [0,1): how long to stay away

	sameServer atomic.Bool // two addresses turned out to be one server
	twins      struct {    // what the log has been told of that
		sync.Mutex
		told bool
	}
	clockDoubted atomic.Bool // so many nodes' clocks seem to run off that it may be ours
	guard        guard

	watchdog   *renew.Watchdog
	renewals   renewals
	errands    sync.WaitGroup // lanes with a request under way, or one to repeat
	background crew           // what waits for something
	lines      lines

	closing  chan struct{} // closed when Close begins: nobody waits any longer
	stopping chan struct{} // closed when nothing is repeated any longer

	mu     sync.Mutex
	closed bool
	outage notice         // too few nodes are left
	calls  sync.WaitGroup // calls under way that may start background work
	holds  map[*hold]struct{}
	ended  chan struct{} // closed when Close has finished
}

// Open returns a coordinator for the nodes at the given URLs (see [node.Open]). Like sql.Open it validates and does no
// I/O; see [Coordinator.Ping].
func Open(cfg Config, urls ...string) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	nodes := make([]*node.Node, 0, len(urls))
	fail := func(err error) (*Coordinator, error) {
		for _, n := range nodes {
			_ = n.Close() // never used
		}
		return nil, err
	}
	for i, url := range urls {
		n, err := node.Open(url, node.WithClock(cfg.Clock))
		if err != nil {
			return fail(fmt.Errorf("redquorum: node %d of %d: %w", i+1, len(urls), err))
		}
		nodes = append(nodes, n)
	}
	c, err := New(nodes, cfg)
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// New returns a coordinator for nodes that the caller has made. It owns them from then on: Close closes them. They
// must be independent masters, each at an address of its own, and an odd number of them is best: an even one needs the
// same quorum as one more and bears no more failures than one less.
func New(nodes []*node.Node, cfg Config) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	if err := validateNodes(nodes, cfg); err != nil {
		return nil, err
	}
	c := &Coordinator{
		cfg:      cfg,
		need:     majority(len(nodes)),
		clock:    cfg.Clock,
		log:      cfg.Logger,
		trace:    newTracers(cfg.Tracer),
		id:       uuid.NewString(),
		random:   rand.Float64,
		watchdog: renew.NewWatchdog(cfg.Clock),
		closing:  make(chan struct{}),
		stopping: make(chan struct{}),
		holds:    make(map[*hold]struct{}),
		ended:    make(chan struct{}),
	}
	for i, n := range nodes {
		c.nodes = append(c.nodes, &voter{Node: n, c: c, i: i, name: n.Name(), pace: pace{drift: c.drift, factor: cfg.DriftFactor}})
	}
	c.guardNodes()
	if c.trace.coordinator != nil {
		c.trace.coordinator.TraceOpen(c)
	}
	return c, nil
}

// validateNodes refuses a set of nodes that is none.
func validateNodes(nodes []*node.Node, cfg Config) error {
	if len(nodes) == 0 {
		return errors.New("redquorum: no nodes: want at least one address")
	}
	seen := make(map[string]int)
	for i, n := range nodes {
		if n == nil {
			return fmt.Errorf("redquorum: node %d of %d is nil", i+1, len(nodes))
		}
		if first, twice := seen[n.Address()]; twice {
			return fmt.Errorf("redquorum: nodes %d and %d have the same address %s: every node must be a server of its own",
				first+1, i+1, n.Address())
		}
		seen[n.Address()] = i
		if cfg.NoRestartGuard && n.BehindSentinel() {
			return fmt.Errorf("redquorum: node %s is behind Sentinel, and NoRestartGuard is set: a failover may forget locks, and "+
				"without the guard two clients would hold one", n.Name())
		}
		if n.Clock() != cfg.Clock {
			return fmt.Errorf("redquorum: node %s measures time on another clock than Config.Clock: want the same one", n.Name())
		}
	}
	return nil
}

// newHolder returns a holder that was never used before.
func (c *Coordinator) newHolder() string {
	return c.id + ":" + strconv.FormatUint(c.holders.Add(1), 10)
}

// twice takes in that a node has the name of another one, or knew a holder it had never seen: two addresses are one server.
// A quorum of addresses is then no quorum of servers, so no lock is taken until each is known to be a server of its own.
// (Were one taken all the same, that server would have one vote: for a holder that is there already it grants nothing.)
func (c *Coordinator) twice(n *voter) {
	c.sameServer.Store(true)
	c.tellTwins(n)
}

// tellTwins logs whether two addresses are one server, if that has changed. Of several who have something to tell the last one
// finds what is true by then.
func (c *Coordinator) tellTwins(n *voter) {
	c.twins.Lock()
	defer c.twins.Unlock()
	switch is := c.sameServer.Load(); {
	case is == c.twins.told:
		return
	case is:
		c.log.Error("two addresses are one server; no lock is taken until that is mended", "node", n.name)
	default:
		c.log.Warn("every address leads to a server of its own now", "node", n.name)
	}
	c.twins.told = !c.twins.told
}

// enter begins a call that may start background work. It fails once the coordinator is closed.
func (c *Coordinator) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.calls.Add(1)
	return nil
}

// upTo draws a duration below d.
func (c *Coordinator) upTo(d time.Duration) time.Duration {
	return time.Duration(c.random() * float64(d))
}

// leave ends a call that enter began.
func (c *Coordinator) leave() { c.calls.Done() }

// rest waits for d, or returns false if nothing is repeated any longer.
func (c *Coordinator) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stopping:
		return false
	}
}

// Close ends every lease, with ErrReleased, frees on the nodes what was held, ends every wait with ErrClosed, closes
// the nodes and joins every goroutine. It takes at most twice the node timeout; what a node did not confirm by then
// runs out with its TTL. It is idempotent: later calls wait for the first.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.ended
		return nil
	}
	c.closed = true
	close(c.closing)
	var holds []*hold
	for h := range c.holds {
		holds = append(holds, h)
	}
	clear(c.holds)
	c.mu.Unlock()

	// A request that is under way has one node timeout left, and the release behind it has another.
	begun := time.Now()
	stop := time.AfterFunc(c.cfg.NodeTimeout, func() { close(c.stopping) })
	for _, h := range holds {
		h.conclude(ErrReleased, 0, func(error) {})
		h.depart()
	}
	c.calls.Wait()
	c.lines.close()
	c.watchdog.Close()
	c.errands.Wait()
	c.background.wait()
	if stop.Stop() {
		close(c.stopping)
	}
	c.guard.end(2*c.cfg.NodeTimeout - time.Since(begun))

	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.Close())
	}
	_ = c.guard.group.Wait() // decisions return no error
	if c.trace.coordinator != nil {
		c.trace.coordinator.TraceClose(c)
	}
	close(c.ended)
	return errors.Join(errs...)
}

// live registers a hold, so that Close finds it. It fails once the coordinator is closed.
func (c *Coordinator) live(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.holds[h] = struct{}{}
	return true
}

// forget takes a hold that has ended off the register.
func (c *Coordinator) forget(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holds, h)
}

// A Locker is what takes locks: a *Coordinator, or what stands in for one in a test.
type Locker interface {
	Acquire(ctx context.Context, name string, opts ...Option) (*Lease, error)
	TryAcquire(ctx context.Context, name string, opts ...Option) (*Lease, error)
	Do(ctx context.Context, name string, fn func(ctx context.Context) error, opts ...Option) error
}

var _ Locker = (*Coordinator)(nil)
