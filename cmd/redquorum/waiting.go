package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// firstWord is how long somebody waits for a lock without a word: who has it at once wants to hear of nothing.
const firstWord = time.Second

// waiting tells what a lock is being waited for: who holds it, or why too few nodes vote. It is the library's tracer, which
// is told of every attempt and so costs the nodes no question.
type waiting struct {
	name string

	mu   sync.Mutex
	last *quorum.QuorumError // of the last attempt; nil before
	long bool                // the lock could not be had at once
}

// TraceAcquireStart leaves the call as it is.
func (*waiting) TraceAcquireStart(ctx context.Context, _ quorum.TraceAcquireStartData) context.Context {
	return ctx
}

// TraceAcquireEnd has nothing to tell: the call's result does.
func (*waiting) TraceAcquireEnd(context.Context, quorum.TraceAcquireEndData) {}

// TraceWaitStart takes in that the lock cannot be had at once.
func (w *waiting) TraceWaitStart(ctx context.Context, _ quorum.TraceWaitStartData) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.long = true
	return ctx
}

// TraceWaitEnd has nothing to tell either.
func (*waiting) TraceWaitEnd(context.Context, quorum.TraceWaitEndData) {}

// TraceAttempt takes in what the nodes said.
func (w *waiting) TraceAttempt(_ context.Context, data quorum.TraceAttemptData) {
	var q *quorum.QuorumError
	if errors.As(data.Err, &q) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = q
	}
}

// waited tells whether the lock could not be had at once.
func (w *waiting) waited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.long
}

// tell says what is waited for, as soon as it has taken a while, and again when that is something else, until ctx ends. A
// lock that goes from hand to hand would fill the screen: so each time it waits longer for the next word.
func (w *waiting) tell(ctx context.Context, say func(string)) {
	told := ""
	for pause := firstWord; ; {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		text, about := w.reason()
		if about == told {
			continue
		}
		say(fmt.Sprintf("waiting for %q: %s", w.name, text))
		told, pause = about, min(2*pause, time.Minute)
	}
}

// reason says what is waited for, and in few words what it is about: of two reasons that are about the same, one is enough.
func (w *waiting) reason() (text, about string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.last == nil:
		return "too few nodes have answered yet", "nothing"
	case errors.Is(w.last, quorum.ErrNotAcquired):
		holder, nodes := holderOf(w.last)
		return fmt.Sprintf("it is held by %s on %d of %d nodes", holder, nodes, len(w.last.Votes)), "held by " + holder
	}
	var votes []string
	for _, v := range w.last.Votes {
		if v.Err != nil || v.Outcome == quorum.Held {
			votes = append(votes, v.String())
		}
	}
	about = "no quorum"
	if errors.Is(w.last, quorum.ErrQuarantined) {
		about = "no quorum yet"
	}
	return fmt.Sprintf("no quorum of nodes (%d of %d votes, need %d): %s", w.last.Got, len(w.last.Votes), w.last.Need, strings.Join(votes, "; ")), about
}

// holderOf is who holds a lock that was not acquired, and on how many nodes: "others" if it is not one, or nobody knows who.
func holderOf(q *quorum.QuorumError) (holder string, nodes int) {
	for _, v := range q.Votes {
		if v.Outcome != quorum.Held {
			continue
		}
		if nodes++; nodes > 1 && v.Holder != holder || v.Holder == "" {
			holder = "others"
			continue
		}
		holder = v.Holder
	}
	if holder == "" {
		holder = "others"
	}
	return holder, nodes
}
