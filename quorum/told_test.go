package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redquorum/redquorum/quorum"
)

// told is a tracer that writes down what it is told, one line each. Contexts carry what they came from, so that the lines
// show what belongs together.
type told struct {
	mu     sync.Mutex
	lines  []string
	votes  map[string]int // by what was asked and how it was answered
	during func()         // called in every method, if there is one
}

type toldKey struct{}

func (tr *told) add(ctx context.Context, format string, args ...any) context.Context {
	tr.mu.Lock()
	line := fmt.Sprintf(format, args...)
	from, _ := ctx.Value(toldKey{}).(string)
	if from != "" {
		line += " < " + from
	}
	tr.lines = append(tr.lines, line)
	during := tr.during
	tr.mu.Unlock()
	if during != nil {
		during()
	}
	what, _, _ := strings.Cut(line, " ")
	return context.WithValue(ctx, toldKey{}, what)
}

func (tr *told) TraceAcquireStart(ctx context.Context, d quorum.TraceAcquireStartData) context.Context {
	return tr.add(ctx, "%s %s", d.Op, d.Name)
}

func (tr *told) TraceAcquireEnd(ctx context.Context, d quorum.TraceAcquireEndData) {
	tr.add(ctx, "%s-end %s lease=%t nested=%t handed=%t after=%v %s", d.Op, d.Name, d.Lease != nil, d.Nested, d.HandedOn, d.Elapsed, class(d.Err))
}

func (tr *told) TraceWaitStart(ctx context.Context, d quorum.TraceWaitStartData) context.Context {
	return tr.add(ctx, "wait %s place=%d", d.Name, d.Place)
}

func (tr *told) TraceWaitEnd(ctx context.Context, d quorum.TraceWaitEndData) {
	tr.add(ctx, "wait-end %s handed=%t after=%v %s", d.Name, d.HandedOn, d.Elapsed, class(d.Err))
}

func (tr *told) TraceAttempt(ctx context.Context, d quorum.TraceAttemptData) {
	tr.add(ctx, "attempt %s %s after=%v %s", d.Op, d.Name, d.Elapsed, class(d.Err))
}

func (tr *told) TraceHoldStart(ctx context.Context, d quorum.TraceHoldStartData) context.Context {
	return tr.add(ctx, "hold %s", d.Lease.Name())
}

func (tr *told) TraceHoldEnd(ctx context.Context, d quorum.TraceHoldEndData) {
	tr.add(ctx, "hold-end %s after=%v loss=%v %s", d.Lease.Name(), d.Elapsed, d.Loss, class(d.Err))
}

func (tr *told) TraceReleaseStart(ctx context.Context, d quorum.TraceReleaseStartData) context.Context {
	return tr.add(ctx, "release %s", d.Lease.Name())
}

func (tr *told) TraceReleaseEnd(ctx context.Context, d quorum.TraceReleaseEndData) {
	tr.add(ctx, "release-end %s handed=%t after=%v %s", d.Lease.Name(), d.HandedOn, d.Elapsed, class(d.Err))
}

func (tr *told) TraceRenewal(ctx context.Context, d quorum.TraceRenewalData) {
	tr.add(ctx, "renewal %s asked=%t left=%v %s", d.Name, d.Asked, d.Left, class(d.Err))
}

func (tr *told) TraceLoss(d quorum.TraceLossData) {
	tr.add(context.Background(), "loss %s %v", d.Name, d.Loss)
}

func (tr *told) TraceVote(d quorum.TraceVoteData) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.votes == nil {
		tr.votes = map[string]int{}
	}
	tr.votes[d.Op+" "+d.Vote.Outcome.String()]++
}

func (tr *told) TraceNode(d quorum.TraceNodeData) {
	tr.add(context.Background(), "node %s %v > %v", d.Node, d.Was, d.Condition)
}

func (tr *told) TraceOpen(c *quorum.Coordinator) {
	tr.add(context.Background(), "open %d", len(c.Stats().Nodes))
}

func (tr *told) TraceClose(c *quorum.Coordinator) {
	tr.add(context.Background(), "close %d", c.Stats().Held)
}

// take returns what was told since it was taken last, but for what begins with one of the words.
func (tr *told) take(without ...string) []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	lines := slices.DeleteFunc(tr.lines, func(line string) bool {
		return slices.ContainsFunc(without, func(word string) bool { return strings.HasPrefix(line, word) })
	})
	tr.lines = nil
	return lines
}

// class names what an error is.
func class(err error) string {
	if err == nil {
		return "ok"
	}
	for _, c := range []error{quorum.ErrNotAcquired, quorum.ErrNoQuorum, quorum.ErrLost, quorum.ErrReleased, context.Canceled} {
		if errors.Is(err, c) {
			return c.Error()
		}
	}
	return err.Error()
}

// wantTold compares what was told.
func wantTold(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// traced returns a warm client with a tracer that has been told nothing yet.
func (cl *cluster) traced(cfg quorum.Config) (*quorum.Coordinator, *told) {
	cl.t.Helper()
	tr := &told{}
	cfg.Tracer = tr
	c := cl.warmClient(cfg)
	synctest.Wait()
	tr.take()
	return c, tr
}
