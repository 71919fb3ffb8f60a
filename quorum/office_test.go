package quorum_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// office is what leaders do: they note that they came and went, and an opponent sees to it that no two believe in their
// terms at once.
type office struct {
	t *testing.T

	mu      sync.Mutex
	leaders map[*quorum.Lease]bool // that have not left
	tokens  []int64
}

// enter notes that a term began.
func (o *office) enter(term *quorum.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other := range o.leaders {
		if other.Err() == nil {
			o.t.Errorf("token %d came while the leader with token %d believes in its term", term.Token(), other.Token())
		}
	}
	if n := len(o.tokens); n > 0 && o.tokens[n-1] >= term.Token() {
		o.t.Errorf("token %d after %v", term.Token(), o.tokens)
	}
	if o.leaders == nil {
		o.leaders = map[*quorum.Lease]bool{}
	}
	o.leaders[term] = true
	o.tokens = append(o.tokens, term.Token())
}

func (o *office) leave(term *quorum.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.leaders, term)
}

// terms is how many there were.
func (o *office) terms() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tokens)
}

// sitting is who leads, by what it believes itself; nil if nobody does.
func (o *office) sitting() *quorum.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leaders {
		if l.Err() == nil {
			return l
		}
	}
	return nil
}

// untilLost leads until its context ends.
func (o *office) untilLost(ctx context.Context, term *quorum.Lease) error {
	o.enter(term)
	defer o.leave(term)
	<-ctx.Done()
	return context.Cause(ctx)
}

// campaign is a Campaign on a goroutine of its own.
type campaign struct {
	cancel context.CancelCauseFunc
	over   chan struct{}
	err    error
}

func campaigning(t *testing.T, c *quorum.Coordinator, lead func(context.Context, *quorum.Lease) error, opts ...quorum.Option) *campaign {
	ctx, cancel := context.WithCancelCause(context.Background())
	k := &campaign{cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(k.over)
		k.err = c.Campaign(ctx, "chair", lead, opts...)
	}()
	t.Cleanup(func() { _ = k.end(nil) })
	return k
}

// end ends the campaign's context and returns what it came to.
func (k *campaign) end(cause error) error {
	k.cancel(cause)
	<-k.over
	return k.err
}
