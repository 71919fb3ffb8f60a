package quorumtest

import (
	"context"
	"sync"
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// An Office is what leaders do: they note that they came and went, and an opponent sees to it that no two believe in their
// terms at once.
type Office struct {
	T *testing.T

	mu      sync.Mutex
	leaders map[*quorum.Lease]bool // that have not left
	tokens  []int64
}

// Enter notes that a term began.
func (o *Office) Enter(term *quorum.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other := range o.leaders {
		if other.Err() == nil {
			o.T.Errorf("token %d came while the leader with token %d believes in its term", term.Token(), other.Token())
		}
	}
	if n := len(o.tokens); n > 0 && o.tokens[n-1] >= term.Token() {
		o.T.Errorf("token %d after %v", term.Token(), o.tokens)
	}
	if o.leaders == nil {
		o.leaders = map[*quorum.Lease]bool{}
	}
	o.leaders[term] = true
	o.tokens = append(o.tokens, term.Token())
}

// Leave notes that it ended.
func (o *Office) Leave(term *quorum.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.leaders, term)
}

// Terms is how many there were.
func (o *Office) Terms() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tokens)
}

// Sitting is who leads, by what it believes itself; nil if nobody does.
func (o *Office) Sitting() *quorum.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leaders {
		if l.Err() == nil {
			return l
		}
	}
	return nil
}

// UntilLost leads until its context ends.
func (o *Office) UntilLost(ctx context.Context, term *quorum.Lease) error {
	o.Enter(term)
	defer o.Leave(term)
	<-ctx.Done()
	return context.Cause(ctx)
}

// A Campaign is one on a goroutine of its own.
type Campaign struct {
	cancel context.CancelCauseFunc
	Over   chan struct{}
	Err    error
}

// Campaigning starts one, which ends with the test at the latest.
func Campaigning(t *testing.T, c *quorum.Coordinator, lead func(context.Context, *quorum.Lease) error, opts ...quorum.Option) *Campaign {
	ctx, cancel := context.WithCancelCause(context.Background())
	k := &Campaign{cancel: cancel, Over: make(chan struct{})}
	go func() {
		defer close(k.Over)
		k.Err = c.Campaign(ctx, "chair", lead, opts...)
	}()
	t.Cleanup(func() { _ = k.End(nil) })
	return k
}

// End ends the campaign's context and returns what it came to.
func (k *Campaign) End(cause error) error {
	k.cancel(cause)
	<-k.Over
	return k.Err
}
