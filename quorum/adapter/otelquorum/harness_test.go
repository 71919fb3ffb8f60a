package otelquorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/otelquorum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched is a cluster of three nodes, with a coordinator whose metrics and spans are collected, and one that nobody watches.
type watched struct {
	t      *testing.T
	nodes  *embedded.Cluster
	locks  *quorum.Coordinator
	others *quorum.Coordinator

	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
	traces *trace.TracerProvider
	tracer *otelquorum.Tracer
}

func watch(t *testing.T, options ...otelquorum.Option) *watched {
	t.Helper()
	nodes, err := embedded.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	w := &watched{t: t, nodes: nodes, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	w.traces = trace.NewTracerProvider(trace.WithSpanProcessor(w.spans))
	tracer, err := otelquorum.New(append(options,
		otelquorum.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(w.reader))),
		otelquorum.WithTracerProvider(w.traces))...)
	if err != nil {
		t.Fatal(err)
	}
	w.tracer = tracer
	w.locks, w.others = w.open(tracer), w.open(nil)
	return w
}

// open returns a coordinator, as another process would have.
func (w *watched) open(tracer quorum.AcquireTracer) *quorum.Coordinator {
	w.t.Helper()
	c, err := quorum.Open(quorum.Config{TTL: 10 * time.Second, NodeTimeout: time.Second, Tracer: tracer}, w.nodes.URLs()...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// node is the name of node i.
func (w *watched) node(i int) string { return strings.TrimPrefix(w.nodes.URLs()[i], "redis://") }

// acquire takes a lock without waiting.
func (w *watched) acquire(c *quorum.Coordinator, name string) *quorum.Lease {
	w.t.Helper()
	l, err := c.TryAcquire(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// everywhere waits until a lock is held on all nodes, and not on a quorum of them only.
func (w *watched) everywhere(l *quorum.Lease) *quorum.Lease {
	w.t.Helper()
	w.eventually("all nodes have granted it", func() bool {
		return !slices.ContainsFunc(l.Votes(), func(v quorum.Vote) bool { return v.Outcome != quorum.Granted })
	})
	return l
}

// release gives it back.
func (w *watched) release(l *quorum.Lease) {
	w.t.Helper()
	if err := l.Release(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// lose lets the watched coordinator lose a lock.
func (w *watched) lose(name string) {
	w.t.Helper()
	l := w.acquire(w.locks, name)
	if _, err := w.others.ForceRelease(w.t.Context(), name); err != nil {
		w.t.Fatal(err)
	}
	if err := l.Renew(w.t.Context()); !errors.Is(err, quorum.ErrLost) {
		w.t.Fatalf("renewed: %v, want the lease lost", err)
	}
}

// wait lets the watched coordinator wait for a lock that the other one has.
func (w *watched) wait(name string) *quorum.Lease {
	w.t.Helper()
	l := w.everywhere(w.acquire(w.others, name))
	got := make(chan *quorum.Lease, 1)
	go func() {
		l, err := w.locks.Acquire(w.t.Context(), name)
		if err != nil {
			w.t.Error(err)
		}
		got <- l
	}()
	w.eventually("it waits", func() bool { return w.locks.Stats().Waiting == 1 })
	w.release(l)
	return <-got
}

// eventually waits until a condition holds.
func (w *watched) eventually(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within half a minute: %s", what)
		}
	}
}

// metrics collects all data points: name and attributes, with the number or, of a histogram, the count.
func (w *watched) metrics() points {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &all); err != nil {
		w.t.Fatal(err)
	}
	p := points{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, d := range data.DataPoints {
					p.add(m.Name, d.Attributes, float64(d.Count))
				}
			case metricdata.Histogram[int64]:
				for _, d := range data.DataPoints {
					p.add(m.Name, d.Attributes, float64(d.Count))
				}
			case metricdata.Sum[int64]:
				for _, d := range data.DataPoints {
					p.add(m.Name, d.Attributes, float64(d.Value))
				}
			case metricdata.Gauge[int64]:
				for _, d := range data.DataPoints {
					p.add(m.Name, d.Attributes, float64(d.Value))
				}
			case metricdata.Gauge[float64]:
				for _, d := range data.DataPoints {
					p.add(m.Name, d.Attributes, d.Value)
				}
			default:
				w.t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return p
}

// points are data points by name and attributes: "redquorum.losses loss=outvoted".
type points map[string]float64

func (p points) add(name string, set attribute.Set, value float64) {
	for _, a := range set.ToSlice() { // in the order of the keys
		name += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(a.Key), "redquorum."), a.Value.String())
	}
	p[name] = value
}

// names are the metrics' names.
func (p points) names() []string {
	var names []string
	for point := range p {
		name, _, _ := strings.Cut(point, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// of are the points of a metric, for a message.
func (p points) of(name string) string {
	var all []string
	for point, value := range p {
		if word, _, _ := strings.Cut(point, " "); word == name {
			all = append(all, fmt.Sprintf("%s: %v", point, value))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n\t")
}

// sum adds up the points of a metric that have all these attributes.
func (p points) sum(name string, attributes ...string) (sum float64) {
	for point, value := range p {
		words := strings.Fields(point)
		if words[0] == name && !slices.ContainsFunc(attributes, func(a string) bool { return !slices.Contains(words, a) }) {
			sum += value
		}
	}
	return sum
}

// ended are the spans of a name that have ended.
func (w *watched) ended(name string) (spans []trace.ReadOnlySpan) {
	for _, s := range w.spans.Ended() {
		if s.Name() == name {
			spans = append(spans, s)
		}
	}
	return spans
}

// attributes are a span's or an event's, as text.
func attributes(all []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		m[strings.TrimPrefix(string(a.Key), "redquorum.")] = a.Value.String()
	}
	return m
}
