package docker_test

import (
	"context"
	"strings"

	"github.com/redquorum/redquorum/quorum"
)

// A watch looks at the votes of one node.
type watch struct {
	fault
	n    int // votes in a row that show the fault
	seen bool
}

func (r *round) name(i int) string { return strings.TrimPrefix(r.cluster.URLs()[i], "redis://") }

func (r *round) watch(i int, f fault) *watch {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	w := &watch{fault: f}
	r.watches[r.name(i)] = w
	return w
}

func (r *round) unwatch(i int) {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	delete(r.watches, r.name(i))
}

func (r *round) saw(w *watch) bool {
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	return w.seen
}

// spy is told of every vote by the clients.
type spy struct{ *round }

func (spy) TraceAcquireStart(ctx context.Context, _ quorum.TraceAcquireStartData) context.Context {
	return ctx
}

func (spy) TraceAcquireEnd(context.Context, quorum.TraceAcquireEndData) {}

func (s spy) TraceVote(data quorum.TraceVoteData) {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	w := s.watches[data.Vote.Node]
	if w == nil || w.shows == nil {
		return
	}
	if w.n++; !w.shows(data.Vote.Err) {
		w.n = 0
	}
	w.seen = w.seen || w.n >= max(1, w.inARow)
}
