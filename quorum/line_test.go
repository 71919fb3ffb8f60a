package quorum

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// A span is a tracer that puts something into a waiter's context, and lets nobody but the waiter read it.
type span struct{ t *testing.T }

func (s span) TraceWaitStart(ctx context.Context, _ TraceWaitStartData) context.Context {
	return private{ctx, s.t}
}
func (span) TraceWaitEnd(context.Context, TraceWaitEndData) {}

type private struct {
	context.Context
	t *testing.T
}

func (p private) Deadline() (time.Time, bool) {
	p.t.Error("a context was read that its waiter may be about to change")
	return p.Context.Deadline()
}

// The head asks how long those behind it have left while one of them, who has just come, tells the tracer that it waits.
func TestContextsOfWaitersAreNotReadByOthers(t *testing.T) {
	c := &Coordinator{clock: clock.System()}
	c.trace.wait = span{t}
	ln := &line{c: c, name: "stock"}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			w := &waiter{c: c, ctx: t.Context(), line: ln}
			w.waits(ln.queue(w))
		})
		all.Go(func() { ln.hurry(time.Second) })
	}
	all.Wait()
	ln.hurry(time.Second)
}
