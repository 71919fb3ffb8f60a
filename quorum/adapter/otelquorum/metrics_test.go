package otelquorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/otelquorum"
)

// want compares sums of data points.
func (w *watched) want(p points, want map[string]float64) {
	w.t.Helper()
	for point, n := range want {
		words := strings.Fields(point)
		if got := p.sum(words[0], words[1:]...); got != n {
			w.t.Errorf("%s is %v, want %v:\n\t%s", point, got, n, p.of(words[0]))
		}
	}
}

func TestLockThatIsTakenAndGivenBackIsMeasured(t *testing.T) {
	w := watch(t)
	l := w.acquire(w.locks, "stock")
	inner := w.acquire(w.locks, "other")
	nested, err := w.locks.Acquire(l.Context(t.Context()), "stock")
	if err != nil {
		t.Fatal(err)
	}
	w.want(w.metrics(), map[string]float64{"redquorum.held": 2, "redquorum.waiting": 0, "redquorum.quorum": 2})
	for _, l := range []*quorum.Lease{nested, inner, l} {
		w.release(l)
	}
	w.everywhere(w.acquire(w.others, "taken"))
	if _, err := w.locks.TryAcquire(t.Context(), "taken"); !errors.Is(err, quorum.ErrNotAcquired) {
		t.Fatal(err)
	}
	w.eventually("all votes are in", func() bool { return w.metrics().sum("redquorum.votes", "operation=release") == 6 })
	w.want(w.metrics(), map[string]float64{
		"redquorum.acquire.duration": 4,
		"redquorum.acquire.duration operation=try-acquire outcome=acquired way=nodes": 2,
		"redquorum.acquire.duration operation=acquire outcome=acquired way=nested":    1,
		"redquorum.acquire.duration operation=try-acquire outcome=not-acquired":       1,
		"redquorum.attempts":                                3,
		"redquorum.attempts outcome=acquired":               2,
		"redquorum.hold.duration outcome=released":          3,
		"redquorum.release.duration outcome=released":       3,
		"redquorum.wait.duration":                           0,
		"redquorum.losses":                                  0,
		"redquorum.held":                                    0,
		"redquorum.votes operation=acquire outcome=granted": 6,
		"redquorum.vote.duration operation=acquire outcome=granted node=" + w.node(0): 2,
		"redquorum.vote.duration operation=release outcome=granted node=" + w.node(1): 2,
		"redquorum.node.condition condition=answering":                                3,
		"redquorum.node.condition condition=silent":                                   0,
		"redquorum.node.changes condition=answering node=" + w.node(2):                1,
	})
	for point, took := range w.metrics() {
		if strings.HasPrefix(point, "redquorum.node.round_trip") && (took <= 0 || took > 0.5) {
			t.Errorf("%s is %v", point, took)
		}
		if strings.Contains(point, "stock") || strings.Contains(point, "lock=") {
			t.Errorf("%s tells locks apart", point)
		}
	}
}

func TestWaitIsMeasured(t *testing.T) {
	w := watch(t)
	l := w.wait("stock")
	next := make(chan *quorum.Lease, 2)
	for i := range 2 {
		go func() {
			l, err := w.locks.Acquire(t.Context(), "stock")
			if err != nil {
				t.Error(err)
			}
			next <- l
		}()
		w.eventually("it waits", func() bool { return w.locks.Stats().Waiting == i+1 })
	}
	w.want(w.metrics(), map[string]float64{"redquorum.held": 1, "redquorum.waiting": 2})
	w.release(l)
	w.release(<-next) // the first asked for a token for the second
	w.release(<-next)
	w.everywhere(w.acquire(w.others, "taken"))
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := w.locks.Acquire(ctx, "taken")
		gaveUp <- err
	}()
	w.eventually("it waits", func() bool { return w.locks.Stats().Waiting == 1 })
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.want(w.metrics(), map[string]float64{
		"redquorum.wait.duration outcome=acquired":        3,
		"redquorum.wait.duration outcome=canceled":        1,
		"redquorum.wait.place":                            4,
		"redquorum.waiting":                               0,
		"redquorum.acquire.duration way=handed-on":        1,
		"redquorum.release.duration outcome=handed-on":    1,
		"redquorum.acquire.duration outcome=acquired":     3,
		"redquorum.acquire.duration outcome=canceled":     1,
		"redquorum.acquire.duration outcome=not-acquired": 0,
	})
}

func TestLossIsMeasured(t *testing.T) {
	w := watch(t)
	w.lose("stock")
	l, err := w.locks.TryAcquire(t.Context(), "short", quorum.WithLeaseTime(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	w.eventually("both losses are told", func() bool { return w.metrics().sum("redquorum.losses") == 2 })
	w.want(w.metrics(), map[string]float64{
		"redquorum.losses loss=revoked":        1,
		"redquorum.losses loss=lease-time":     1,
		"redquorum.renewals outcome=missed":    1,
		"redquorum.renewals outcome=renewed":   0,
		"redquorum.hold.duration outcome=lost": 2,
		"redquorum.held":                       0,
	})
}

func TestNodesAreMeasured(t *testing.T) {
	w := watch(t)
	w.release(w.acquire(w.locks, "stock"))
	_ = w.nodes.Hang(0)
	w.release(w.acquire(w.locks, "stock"))
	_ = w.nodes.Stop(1) // the others are no quorum
	if _, err := w.locks.TryAcquire(t.Context(), "stock"); !errors.Is(err, quorum.ErrNoQuorum) {
		t.Fatal(err)
	}
	w.eventually("both are silent", func() bool { return w.metrics().sum("redquorum.node.condition", "condition=silent") == 2 })
	p := w.metrics()
	w.want(p, map[string]float64{
		"redquorum.node.condition condition=silent node=" + w.node(0):    1,
		"redquorum.node.condition condition=answering node=" + w.node(0): 0,
		"redquorum.node.condition condition=silent node=" + w.node(1):    1,
		"redquorum.node.condition condition=answering node=" + w.node(2): 1,
		"redquorum.acquire.duration outcome=no-quorum":                   1,
		"redquorum.attempts outcome=no-quorum":                           1,
	})
	if p.sum("redquorum.votes", "node="+w.node(0), "error.type=timeout") == 0 {
		t.Errorf("no vote timed out:\n\t%s", p.of("redquorum.votes"))
	}
	if p.sum("redquorum.votes", "node="+w.node(1), "error.type=unreachable") == 0 {
		t.Errorf("no node was unreachable:\n\t%s", p.of("redquorum.votes"))
	}
	_ = w.nodes.Resume(0)
	w.eventually("it answers again", func() bool {
		if l, err := w.locks.TryAcquire(t.Context(), "again"); err == nil {
			w.release(l)
		}
		return w.metrics().sum("redquorum.node.condition", "condition=silent", "node="+w.node(0)) == 0
	})
	_ = w.nodes.Restart(1, false)
	w.eventually("it is in quarantine", func() bool {
		w.release(w.acquire(w.locks, "again"))
		return w.metrics().sum("redquorum.node.condition", "condition=quarantined", "node="+w.node(1)) == 1
	})
	w.eventually("a vote does not count for it", func() bool {
		w.release(w.acquire(w.locks, "again"))
		return w.metrics().sum("redquorum.votes", "node="+w.node(1), "outcome=failed", "error.type=quarantined") > 0
	})
}

func TestOptionsAddAttributes(t *testing.T) {
	w := watch(t, otelquorum.WithAttributes(attribute.String("cluster", "east")),
		otelquorum.WithLockAttribute(func(name string) string {
			class, _, _ := strings.Cut(name, "-")
			return strings.TrimPrefix(class, "secret")
		}))
	for _, name := range []string{"invoice-1", "invoice-2", "secret-3"} {
		w.release(w.acquire(w.locks, name))
	}
	p := w.metrics()
	w.want(p, map[string]float64{
		"redquorum.acquire.duration lock=invoice": 2,
		"redquorum.hold.duration lock=invoice":    2,
		"redquorum.acquire.duration":              3,
	})
	for point := range p {
		if !strings.Contains(point, "cluster=east") {
			t.Errorf("%s lacks the attribute of all", point)
		}
		if strings.Contains(point, "-1") || strings.Contains(point, "lock=secret") || strings.HasSuffix(point, "lock=") {
			t.Errorf("%s has a lock's name", point)
		}
	}
	if spans := w.ended("redquorum.acquire"); len(spans) != 3 || attributes(spans[0].Attributes())["cluster"] != "east" {
		t.Errorf("spans are %v", spans)
	}
}

// When the last coordinator is closed there is nothing to observe, and nothing that keeps it.
func TestGaugesEndWithTheLastCoordinator(t *testing.T) {
	w := watch(t)
	w.release(w.acquire(w.locks, "stock"))
	w.want(w.metrics(), map[string]float64{"redquorum.quorum": 2})
	if err := w.locks.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range w.metrics().names() {
		if name == "redquorum.quorum" || name == "redquorum.node.condition" || name == "redquorum.held" {
			t.Errorf("%s is still observed", name)
		}
	}
}

// Two coordinators of the same nodes share a Tracer: what they hold is added up, and what they know of a node is told once.
func TestCoordinatorsOfOneTracerAreAddedUp(t *testing.T) {
	w := watch(t)
	second := w.open(w.tracer)
	w.acquire(w.locks, "a")
	w.acquire(second, "b")
	w.want(w.metrics(), map[string]float64{
		"redquorum.held": 2, "redquorum.quorum": 2, "redquorum.node.condition": 3, "redquorum.node.condition condition=answering": 3,
	})
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(w.metrics(), map[string]float64{"redquorum.held": 1, "redquorum.quorum": 2})
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for what, option := range map[string]otelquorum.Option{
		"option 0 is nil":           nil,
		"meter provider is nil":     otelquorum.WithMeterProvider(nil),
		"tracer provider is nil":    otelquorum.WithTracerProvider(nil),
		"without a function":        otelquorum.WithLockAttribute(nil),
		`attribute "" is not valid`: otelquorum.WithAttributes(attribute.String("", "x")),
	} {
		if _, err := otelquorum.New(option); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("refused with %v, want %q", err, what)
		}
	}
	if _, err := otelquorum.New(); err != nil { // the global providers
		t.Error(err)
	}
}
