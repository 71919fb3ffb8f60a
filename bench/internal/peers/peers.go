// Package peers is the lock clients that are compared, each set up as its own documentation advises, behind one
// interface.
package peers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Lease is a lock that is held.
type Lease interface {
	Release(ctx context.Context) error
}

// A Locker takes locks. Lock waits for them, until ctx ends.
type Locker interface {
	Lock(ctx context.Context, name string) (Lease, error)
	Close() error
}

// A Peer is one kind of client.
type Peer struct {
	Name string
	// Single says that it uses the first node only.
	Single bool
	// NoLock says that it excludes nobody: it is sent and answered, no more.
	NoLock bool
	// Renews says that it keeps a lease alive by itself.
	Renews bool
	// How is how it was set up, for a reader who doubts the figures.
	How string

	open func(ctx context.Context, urls []string, ttl time.Duration) (Locker, error)
}

// Open connects to the nodes, and uses as many as Nodes says. A TTL other than 0 is for those that renew; the others,
// and 0, keep to their default.
func (p Peer) Open(ctx context.Context, urls []string, ttl time.Duration) (Locker, error) {
	l, err := p.open(ctx, urls[:p.Nodes(len(urls))], ttl)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return l, nil
}

// Nodes is how many of n nodes it uses.
func (p Peer) Nodes(n int) int {
	if p.Single {
		return min(n, 1)
	}
	return n
}

// All are the peers, the one that this is about first.
func All() []Peer {
	return []Peer{
		{Name: "redquorum", Renews: true, open: openRedquorum,
			How: "quorum.Open with the zero Config"},
		{Name: "redsync", open: openRedsync,
			How: "v4, a go-redis v9 pool per node, NewMutex without options (expiry 8 s, polls every 50 to 250 ms)"},
		{Name: "rueidislock", Single: true, Renews: true, open: openRueidislock(1),
			How: "one server, so KeyMajority 1; NoLoopTracking, as for Redis 7.0.5 and later; the rest by default"},
		{Name: "rueidislock-5", Single: true, Renews: true, open: openRueidislock(3),
			How: "the same with KeyMajority 3: a majority of five keys, as for five servers, on one"},
		{Name: "redislock", Single: true, open: openRedislock,
			How: "bsm/redislock, one server, lease of 30 s, LinearBackoff of 100 ms as in its example"},
		{Name: "floor", NoLock: true, open: openFloor,
			How: "no lock: SET and DEL to every node, pipelined on one connection each, back at a majority of replies"},
	}
}

// Select returns the peers of a comma-separated list of names, in the order of All; all of them for an empty one.
func Select(list string) ([]Peer, error) {
	all := All()
	if list == "" {
		return all, nil
	}
	wanted := strings.Split(list, ",")
	var known []string
	for _, p := range all {
		known = append(known, p.Name)
	}
	for i, name := range wanted {
		wanted[i] = strings.TrimSpace(name)
		if !slices.Contains(known, wanted[i]) {
			return nil, fmt.Errorf("peer %q is unknown: want some of %s", name, strings.Join(known, ","))
		}
	}
	return slices.DeleteFunc(all, func(p Peer) bool { return !slices.Contains(wanted, p.Name) }), nil
}
