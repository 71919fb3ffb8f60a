package quorum

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Listing is the names of locks that were found on the nodes.
type Listing struct {
	// Names are the names, each once, sorted.
	Names []string
	// Cut tells that there are more names than were wanted. Which ones are missing is chance.
	Cut bool
	// Nodes tell how far each node was looked through, in the order of the nodes.
	Nodes []NodeListing
}

// NodeListing is how far a node was looked through.
type NodeListing struct {
	// Node is the node's name.
	Node string
	// Whole tells whether all of its keys were looked at.
	Whole bool
	// Elapsed is how long it took.
	Elapsed time.Duration
	// Err is why the rest is missing; nil also where enough names were found before, or ctx ended.
	Err error
}

// Names finds names under which some node has a lock, at most limit of them; pattern is a glob as Redis has it, "*" for all.
// Who holds them, and whether a quorum of nodes agrees, is for [Coordinator.InspectAll] to say. It is for operators: every
// node's keys are gone through, some hundred at a time (SCAN, never KEYS), which on a server with millions of other keys
// takes seconds. It changes nothing.
//
// The names are no snapshot, and nothing may rely on one being absent. A lock that a node has all the while is found if that
// node answered; one that is taken, released or restored meanwhile may be or not. Whatever somebody else made look like a
// lock, a hash with one field like a holder, is taken for one.
//
// It fails, with what was found beside the error, if no quorum of nodes could be looked through (ErrNoQuorum), if ctx ended
// before it was done (its error; both may be), or with ErrClosed.
func (c *Coordinator) Names(ctx context.Context, pattern string, limit int) (Listing, error) {
	switch {
	case pattern == "":
		return Listing{}, errors.New("redquorum: the pattern is empty: want one that matches names, such as * for all")
	case limit < 1:
		return Listing{}, fmt.Errorf("redquorum: limit %d: want at least 1 name", limit)
	}
	if err := c.enter(); err != nil {
		return Listing{}, err
	}
	defer c.leave()
	const op = "names"
	if ctx.Err() != nil {
		return Listing{}, c.noAnswer(op, pattern, contextErrors(ctx)...)
	}
	found := &find{prefix: c.cfg.Prefix, limit: limit, names: make(map[string]struct{}), closing: c.closing}
	l := Listing{Nodes: make([]NodeListing, len(c.nodes))}
	var nodes sync.WaitGroup
	for i, n := range c.nodes {
		nodes.Go(func() {
			begun := c.clock.Now()
			whole, err := n.Scan(ctx, c.key(pattern), c.cfg.NodeTimeout, found.take)
			l.Nodes[i] = NodeListing{Node: n.name, Whole: whole, Elapsed: c.clock.Now().Sub(begun), Err: err}
		})
	}
	nodes.Wait()
	l.Names, l.Cut = slices.Sorted(maps.Keys(found.names)), found.more

	votes, failed, given := make([]Vote, len(l.Nodes)), 0, false
	for i, n := range l.Nodes {
		votes[i] = Vote{Node: n.Node, Outcome: Granted, Elapsed: n.Elapsed, Err: n.Err}
		switch {
		case n.Err != nil:
			votes[i].Outcome = Failed
			failed++
		case !n.Whole && !l.Cut:
			votes[i].Outcome = Unknown
			given = true // up, by ctx or by Close
		}
	}
	var classes []error
	if given {
		select {
		case <-c.closing:
			return l, ErrClosed
		case <-ctx.Done(): // now, if it has not yet
			classes = contextErrors(ctx)
		}
	}
	if failed > len(c.nodes)-c.need {
		classes = append(classes, ErrNoQuorum)
	}
	if len(classes) > 0 {
		return l, c.quorumError(op, pattern, votes, classes...)
	}
	return l, nil
}

// A find is the names found so far, on all nodes.
type find struct {
	prefix  string // stands for itself in a pattern, see prefix.go
	limit   int
	closing <-chan struct{}

	mu    sync.Mutex
	names map[string]struct{}
	more  bool // than limit
}

// take takes in the names that a node has, and tells whether to go on.
func (f *find) take(names []string) bool {
	select {
	case <-f.closing:
		return false
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		name = strings.TrimPrefix(name, f.prefix)
		if _, known := f.names[name]; known {
			continue
		}
		if len(f.names) == f.limit {
			f.more = true
			break
		}
		f.names[name] = struct{}{}
	}
	return !f.more
}
