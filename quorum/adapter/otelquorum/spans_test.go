package otelquorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/otelquorum"
)

// one returns the one span of a name that has ended.
func (w *watched) one(name string) trace.ReadOnlySpan {
	w.t.Helper()
	spans := w.ended(name)
	if len(spans) != 1 {
		w.t.Fatalf("%d spans %s, want one", len(spans), name)
	}
	return spans[0]
}

// events are the names of a span's events.
func events(s trace.ReadOnlySpan) string {
	var names []string
	for _, e := range s.Events() {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func TestSpansOfALockHangTogether(t *testing.T) {
	w := watch(t)
	ctx, request := w.traces.Tracer("test").Start(t.Context(), "request")
	var token int64
	err := w.locks.Do(ctx, "stock", func(ctx context.Context) error {
		token = quorum.LeaseFrom(ctx).Token()
		if len(w.ended("redquorum.acquire")) != 1 || len(w.ended("redquorum.hold")) != 0 {
			t.Error("under the lock the call has not ended, or the hold has")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	request.End()
	acquire, hold, release := w.one("redquorum.acquire"), w.one("redquorum.hold"), w.one("redquorum.release")
	for _, s := range []trace.ReadOnlySpan{acquire, hold, release} {
		if s.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("%s is not a child of the request", s.Name())
		}
		a := attributes(s.Attributes())
		if a["name"] != "stock" || a["holder"] == "" || a["token"] == "" || s.Status().Code != codes.Unset {
			t.Errorf("%s has %v, and status %v", s.Name(), a, s.Status())
		}
	}
	if links := hold.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != acquire.SpanContext().SpanID() {
		t.Errorf("the hold's links are %v", links)
	}
	if a := attributes(acquire.Attributes()); a["operation"] != "acquire" || a["outcome"] != "acquired" || a["way"] != "nodes" {
		t.Errorf("the call has %v", a)
	}
	if a := attributes(hold.Attributes()); a["outcome"] != "released" || token == 0 {
		t.Errorf("the hold has %v", a)
	}
	if got := events(acquire); got != "redquorum.attempt" {
		t.Errorf("the call's events are %q", got)
	}
}

func TestSpanOfACallThatWaitedTellsOfIt(t *testing.T) {
	w := watch(t)
	w.release(w.wait("stock"))
	acquire := w.one("redquorum.acquire")
	got := events(acquire)
	if !strings.HasPrefix(got, "redquorum.attempt redquorum.wait ") || !strings.HasSuffix(got, " redquorum.attempt") {
		t.Errorf("its events are %q", got)
	}
	first := attributes(acquire.Events()[0].Attributes)
	if first["outcome"] != "not-acquired" || !strings.Contains(first["votes"], " held by ") {
		t.Errorf("the first attempt has %v", first)
	}
	if a := attributes(acquire.Attributes()); a["wait.duration"] == "" || a["outcome"] != "acquired" {
		t.Errorf("it has %v", a)
	}
}

func TestSpanOfALockThatWasLostIsAnError(t *testing.T) {
	w := watch(t)
	w.lose("stock")
	hold := w.one("redquorum.hold")
	if s := hold.Status(); s.Code != codes.Error || s.Description != "lease lost: revoked" {
		t.Errorf("its status is %v", s)
	}
	if a := attributes(hold.Attributes()); a["outcome"] != "lost" || a["loss"] != "revoked" {
		t.Errorf("it has %v", a)
	}
}

// A renewal that fails, while the lease lives on, is an event of the hold.
func TestSpanOfAHoldHasTheRenewalsThatFailed(t *testing.T) {
	w := watch(t)
	l := w.acquire(w.locks, "stock")
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = w.nodes.Hang(0)
	_ = w.nodes.Hang(1)
	if err := l.Renew(t.Context()); !errors.Is(err, quorum.ErrNoQuorum) {
		t.Fatalf("renewed: %v", err)
	}
	_ = w.nodes.Resume(0)
	_ = w.nodes.Resume(1)
	w.eventually("the lease is renewed again", func() bool { return l.Renew(t.Context()) == nil })
	w.release(l)
	hold := w.one("redquorum.hold")
	if !strings.HasPrefix(events(hold), "redquorum.renewal") || hold.Status().Code != codes.Unset {
		t.Fatalf("events are %q, status %v", events(hold), hold.Status())
	}
	a := attributes(hold.Events()[0].Attributes)
	if a["outcome"] != "missed" || a["left"] == "" || !strings.Contains(a["votes"], w.node(0)+" unknown") {
		t.Errorf("the renewal has %v", a)
	}
}

// That others have the lock is what TryAcquire is there to find out, and no error; that no quorum answers is one.
func TestSpanOfACallThatFailedIsAnErrorUnlessOthersHaveTheLock(t *testing.T) {
	w := watch(t)
	w.everywhere(w.acquire(w.others, "taken"))
	if _, err := w.locks.TryAcquire(t.Context(), "taken"); !errors.Is(err, quorum.ErrNotAcquired) {
		t.Fatal(err)
	}
	if s := w.one("redquorum.acquire"); s.Status().Code != codes.Unset || attributes(s.Attributes())["error.type"] != "not-acquired" {
		t.Errorf("it has %v, and status %v", attributes(s.Attributes()), s.Status())
	}
	w.spans.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.locks.TryAcquire(ctx, "stock"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s := w.one("redquorum.acquire"); s.Status().Code != codes.Unset || attributes(s.Attributes())["outcome"] != "canceled" {
		t.Errorf("it has %v, and status %v", attributes(s.Attributes()), s.Status())
	}
	w.spans.Reset()
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := w.locks.Acquire(ctx, "taken"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if s := w.one("redquorum.acquire"); s.Status().Code != codes.Error || attributes(s.Attributes())["outcome"] != "deadline-exceeded" {
		t.Errorf("it has %v, and status %v", attributes(s.Attributes()), s.Status())
	}
	w.spans.Reset()
	_ = w.nodes.Stop(0)
	_ = w.nodes.Stop(1)
	if _, err := w.locks.TryAcquire(t.Context(), "stock"); !errors.Is(err, quorum.ErrNoQuorum) {
		t.Fatal(err)
	}
	if s := w.one("redquorum.acquire"); s.Status().Code != codes.Error || attributes(s.Attributes())["error.type"] != "no-quorum" {
		t.Errorf("it has %v, and status %v", attributes(s.Attributes()), s.Status())
	}
}

func TestWithoutHoldSpansThereAreNone(t *testing.T) {
	w := watch(t, otelquorum.WithoutHoldSpans())
	ctx, request := w.traces.Tracer("test").Start(t.Context(), "request")
	l, err := w.locks.TryAcquire(ctx, "stock")
	if err != nil {
		t.Fatal(err)
	}
	w.release(l)
	w.lose("other")
	if !request.IsRecording() {
		t.Error("the caller's span was ended")
	}
	request.End()
	w.one("request") // and no other
	if n := len(w.ended("redquorum.hold")); n > 0 {
		t.Errorf("%d spans of holds", n)
	}
	if s := w.one("request"); len(s.Events()) > 0 || len(s.Attributes()) > 0 || s.Status().Code != codes.Unset {
		t.Errorf("the caller's span has %v, %v, %v", s.Events(), s.Attributes(), s.Status())
	}
	w.want(w.metrics(), map[string]float64{"redquorum.hold.duration": 2})
}

// Whoever reads spans and metrics is not to learn how to log in.
func TestNoPasswordIsTold(t *testing.T) {
	const secret = "correct-horse"
	w := watch(t)
	var urls []string
	for i := range w.nodes.URLs() {
		urls = append(urls, "redis://someone:"+secret+"@"+w.node(i))
	}
	c, err := quorum.Open(quorum.Config{Tracer: w.tracer}, urls...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.TryAcquire(t.Context(), "stock"); err == nil {
		t.Fatal("the nodes know nobody of that name, and granted the lock")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if p := w.metrics(); p.sum("redquorum.votes", "error.type=denied", "operation=acquire") != 3 {
		t.Errorf("three votes were to be denied:\n\t%s", p.of("redquorum.votes"))
	}
	for point := range w.metrics() {
		if strings.Contains(point, secret) || strings.Contains(point, "someone") {
			t.Errorf("a metric tells: %s", point)
		}
	}
	for _, s := range w.spans.Ended() {
		told := s.Name() + s.Status().Description
		for _, v := range attributes(s.Attributes()) {
			told += v
		}
		for _, e := range s.Events() {
			for _, v := range attributes(e.Attributes) {
				told += v
			}
		}
		if strings.Contains(told, secret) || strings.Contains(told, "someone") {
			t.Errorf("a span tells: %s", told)
		}
	}
}
