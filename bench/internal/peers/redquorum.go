package peers

import (
	"context"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

type redquorum struct{ c *quorum.Coordinator }

func openRedquorum(ctx context.Context, urls []string, ttl time.Duration) (Locker, error) {
	// The guard time is everybody's, whatever TTL this client uses.
	c, err := quorum.Open(quorum.Config{TTL: ttl, GuardTime: max(ttl, quorum.DefaultTTL)}, urls...)
	if err != nil {
		return nil, err
	}
	if err := c.Ping(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return redquorum{c}, nil
}

func (r redquorum) Lock(ctx context.Context, name string) (Lease, error) {
	l, err := r.c.Acquire(ctx, name)
	if err != nil {
		return nil, err // not a nil *Lease in an interface
	}
	return l, nil
}

func (r redquorum) Close() error { return r.c.Close() }
