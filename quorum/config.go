package quorum

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// Defaults of [Config].
const (
	DefaultTTL         = 30 * time.Second
	DefaultDriftFactor = 0.01

	minNodeTimeout = 20 * time.Millisecond
	maxNodeTimeout = 500 * time.Millisecond
)

// Config is how a coordinator works. The zero value of each field means its default.
type Config struct {
	// TTL is what the nodes are told, and so how long a lock outlives a holder that died. The watchdog renews every
	// third of it. Whole milliseconds; default 30 s.
	TTL time.Duration

	// NodeTimeout is how long one node has for one operation, its connection included. Longer than the slowest link's
	// round trip, much shorter than TTL. Default TTL/20, but at least 20 ms and at most 500 ms.
	NodeTimeout time.Duration

	// DriftFactor is by how much two clocks may run apart, as a part of the time that passes: in (0,1), default 0.01.
	// A lease is believed until start + TTL - drift, where drift = TTL × DriftFactor + 2 ms + the clock's own
	// uncertainty.
	DriftFactor float64

	// MaxHold ends a watched lease, with ErrLost, no later than this after its grant; it is for work that must not go
	// on for ever because its process hangs in a loop. Default 0: no limit. Leases with a lease time of their own are
	// not affected.
	MaxHold time.Duration

	// GuardTime is the longest TTL that any client of these nodes uses, where some use a longer one than this client: so
	// long does a node that was restarted and may have forgotten locks not vote. Default TTL. The nodes and clients pass on what
	// they hear of longer leases, but those who know may be away just then (docs/safety.md, gap a):
	// longer is safer, and costs nothing but a longer wait after a restart.
	GuardTime time.Duration

	// NoRestartGuard lets nodes vote at once after a restart. By default a node that may have forgotten locks does not
	// vote for as long as the longest TTL in use: without that, a node that is restarted empty can make a second quorum.
	// All clients of a set of nodes must agree. The guard needs the permission to run INFO.
	NoRestartGuard bool

	// Prefix is put in front of every name on its way to the nodes, so that users of the same nodes do not meet, and an
	// ACL can confine them (see [ACL]). Names in errors, leases and the log are the caller's; Redisson has to use the prefix
	// and the name. Clients with other prefixes have other locks; end a prefix so that none begins another, "shop:" and not
	// "shop". The nodes' records, and so the restart guard and the longest TTL in use, are common to all. Default none. It
	// has none of *?[]\, no space, and is no beginning of what the nodes keep besides locks ("redquorum_fence:{", say).
	Prefix string

	// Logger hears of lost leases, failing nodes and anything that looks like a misconfiguration: once, and once more when
	// it is over; what goes on failing is at the debug level. Its attributes are name (the lock's), holder and token (of a
	// lease), node, error, why, left (how long a lease or key has yet) and for (how long a node's votes do not count yet), and
	// in some messages figures of their own. Default nil: silent. Its handler is called where the nodes' answers are read:
	// while it blocks, so do they.
	Logger *slog.Logger

	// Tracer is told what the coordinator does: at least every call that asks for a lock, and whatever else it implements of
	// WaitTracer, AttemptTracer, HoldTracer, ReleaseTracer, RenewalTracer, LossTracer, VoteTracer, NodeTracer and
	// CoordinatorTracer. It must return at once. Default nil: nobody is told, and nothing is spent on it.
	// quorum/adapter/otelquorum has one for OpenTelemetry.
	Tracer AcquireTracer

	// Clock measures time. Default nil: clock.System(), which goes on during a suspend. It is for tests.
	Clock clock.Clock
}

// Validate reports the first field whose value breaks a rule, with the value and the rule.
func (c Config) Validate() error {
	switch {
	case c.TTL < 0:
		return fmt.Errorf("redquorum: TTL %v is negative: want more than 0, or 0 for %v", c.TTL, DefaultTTL)
	case c.TTL > 0 && c.TTL < time.Millisecond:
		return fmt.Errorf("redquorum: TTL %v is under 1ms, the finest that Redis knows", c.TTL)
	case c.NodeTimeout < 0:
		return fmt.Errorf("redquorum: NodeTimeout %v is negative: want more than 0, or 0 for TTL/20", c.NodeTimeout)
	case c.NodeTimeout > 0 && c.NodeTimeout < time.Millisecond:
		return fmt.Errorf("redquorum: NodeTimeout %v is under 1ms: no node answers reliably in that time", c.NodeTimeout)
	case c.DriftFactor != 0 && !(c.DriftFactor > 0 && c.DriftFactor < 1): // NaN too
		return fmt.Errorf("redquorum: DriftFactor %v is outside (0,1); 0 means %v", c.DriftFactor, DefaultDriftFactor)
	case c.GuardTime < 0:
		return fmt.Errorf("redquorum: GuardTime %v is negative: want the longest TTL in use, or 0 for TTL", c.GuardTime)
	case c.MaxHold < 0:
		return fmt.Errorf("redquorum: MaxHold %v is negative: want more than 0, or 0 for no limit", c.MaxHold)
	}
	if err := validatePrefix(c.Prefix); err != nil {
		return err
	}
	c = c.WithDefaults()
	if c.NodeTimeout >= c.TTL {
		return fmt.Errorf("redquorum: NodeTimeout %v is not shorter than TTL %v", c.NodeTimeout, c.TTL)
	}
	drift := clock.Drift(c.TTL, c.DriftFactor, c.Clock.Uncertainty())
	if least := c.TTL/3 + 2*c.NodeTimeout + drift; c.TTL < least {
		return fmt.Errorf("redquorum: TTL %v is too small for drift %v and NodeTimeout %v: a renewal starts after "+
			"TTL/3 and must be able to fail once and succeed before the lease ends, which takes %v",
			c.TTL, drift, c.NodeTimeout, least)
	}
	return nil
}

// WithDefaults returns the configuration with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	c.TTL = c.TTL.Truncate(time.Millisecond)
	if c.NodeTimeout == 0 {
		c.NodeTimeout = min(max(c.TTL/20, minNodeTimeout), maxNodeTimeout)
	}
	if c.DriftFactor == 0 {
		c.DriftFactor = DefaultDriftFactor
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	return c
}

// validateName refuses a name that is no name.
func (c *Coordinator) validateName(name string) error {
	if name == "" {
		return errors.New("redquorum: the lock's name is empty: want at least one byte")
	}
	if script.Reserved(c.key(name)) {
		return fmt.Errorf("redquorum: the lock's name is %q, where the nodes keep what locks need: want another one", name)
	}
	return nil
}
