package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redquorum/redquorum/quorum"
)

// Defaults of [Config].
const (
	DefaultMinHold = 5 * time.Second
	DefaultPrefix  = "gocron:"
)

// Config is how a locker works. The zero value of each field means its default.
type Config struct {
	// MinHold is how long the lock of a run is kept at least, from its grant, though the job be done long before. It must
	// be longer than the clocks of the processes may differ, with the time by which a busy one comes late, and shorter
	// than the time between two ticks: a tick that comes within MinHold of the last run is skipped, and logged if that
	// run was here. Jobs that need different ones get a locker each. Default 5 s, which is too long for a job that is
	// to run every five seconds, and rather long for clocks that are kept by NTP.
	MinHold time.Duration

	// Prefix goes before the job's name in the lock's, so that jobs meet no other locks. Services that share the nodes and
	// have jobs of the same name need one each: without gocron.WithName a job has the name of its function, and main.main.func1
	// is nobody's in particular. Default "gocron:".
	Prefix string

	// Logger hears of leases that were lost under a job, and of ticks that come too soon. gocron discards what an Unlock
	// returns. Default nil: silent.
	Logger *slog.Logger
}

// A Locker is a gocron.Locker over locks of a quorum. It is safe for concurrent use, by several schedulers too.
type Locker struct {
	locks quorum.Locker
	cfg   Config

	mu   sync.Mutex
	runs map[string]*run // by job, from before the grant until the lock is given back
}

var _ gocron.Locker = (*Locker)(nil)

// New returns a locker that takes its locks from locks, which stays the caller's to close.
func New(locks quorum.Locker, cfg Config) (*Locker, error) {
	if locks == nil {
		return nil, errors.New("gocronlock: no locks: want a *quorum.Coordinator, or what stands in for one")
	}
	if cfg.MinHold < 0 {
		return nil, fmt.Errorf("gocronlock: MinHold %v is negative: want more than 0, or 0 for %v", cfg.MinHold, DefaultMinHold)
	}
	if cfg.MinHold == 0 {
		cfg.MinHold = DefaultMinHold
	}
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Locker{locks: locks, cfg: cfg, runs: make(map[string]*run)}, nil
}

// Lock takes the lock of a job's run, or fails if it runs already or has just run. It does not wait for a holder. gocron
// calls it at each tick, and then Unlock.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	r := &run{locker: l, job: job, freed: make(chan struct{})}
	if err := l.enter(r); err != nil {
		return nil, err
	}
	// A job's context may be derived from one that carries a lease, and what nests excludes nobody.
	lease, err := l.locks.TryAcquire(quorum.WithoutLease(ctx), l.cfg.Prefix+job)
	if err != nil {
		l.leave(r)
		return nil, fmt.Errorf("gocronlock: job %q: %w", job, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.lease, r.granted = lease, time.Now()
	return r, nil
}

// enter makes a run the one of its job in this process. After a loss the nodes would grant the lock again while the job
// is still at it: two runs side by side in one process, whatever happens to the cluster, is what nobody wants.
func (l *Locker) enter(r *run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.runs[r.job]
	switch {
	case before == nil:
		l.runs[r.job] = r
		return nil
	case !before.unlocked:
		return fmt.Errorf("gocronlock: job %q: %w: it runs in this process", r.job, quorum.ErrNotAcquired)
	}
	ago := time.Since(before.granted)
	l.cfg.Logger.Warn("a tick comes too soon and is skipped: is MinHold longer than the job's interval?",
		"job", r.job, "last run", ago, "MinHold", l.cfg.MinHold)
	return fmt.Errorf("gocronlock: job %q: %w: it ran %v ago in this process, and MinHold is %v",
		r.job, quorum.ErrNotAcquired, ago.Round(time.Millisecond), l.cfg.MinHold)
}

// leave ends a run.
func (l *Locker) leave(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, r.job)
	close(r.freed)
}

// Lease is the lease of the job that runs in this process, to watch its Done, or for its Token; nil while it does not run.
func (l *Locker) Lease(job string) *quorum.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[job]
	if r == nil || r.unlocked {
		return nil
	}
	return r.lease
}

// Drain waits until the lock of every job that is done has been kept for MinHold and given back. ctx bounds the waiting;
// its error means that closing the coordinator now frees a lock too early, and the same tick may be run elsewhere.
func (l *Locker) Drain(ctx context.Context) error {
	for r := l.resting(); r != nil; r = l.resting() {
		select {
		case <-r.freed:
		case <-ctx.Done():
			return fmt.Errorf("gocronlock: the lock of job %q is still kept: %w", r.job, context.Cause(ctx))
		}
	}
	return nil
}

// resting is a run whose job is done and whose lock is kept; nil if there is none.
func (l *Locker) resting() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		if r.unlocked {
			return r
		}
	}
	return nil
}
