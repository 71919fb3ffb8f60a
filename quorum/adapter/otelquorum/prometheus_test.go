package otelquorum_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/otelquorum"
)

// families are the metrics of a page, by name.
type families map[string]*dto.MetricFamily

// scrape fetches and parses a page, as Prometheus does.
func scrape(t *testing.T, client *http.Client, url string) families {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the page is %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sum adds up a family's counters, gauges, and counts of histograms, that have all these labels, "name=value".
func (f families) sum(name string, labels ...string) (sum float64) {
	for _, m := range f[name].GetMetric() {
		has := map[string]bool{}
		for _, l := range m.GetLabel() {
			has[strings.TrimPrefix(l.GetName(), "redquorum_")+"="+l.GetValue()] = true
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !has[l] }) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// The whole way: locks taken and lost, a wait, a node that is dead; and Prometheus' own parser finds all of it on a page
// that is served over HTTP.
func TestPrometheusFindsWhatHappened(t *testing.T) {
	registry := prometheus.NewRegistry()
	exporter, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	defer func() { _ = provider.Shutdown(t.Context()) }()
	page := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	defer page.Close()

	w := watch(t) // its own metrics are not served
	tracer, err := otelquorum.New(otelquorum.WithMeterProvider(provider))
	if err != nil {
		t.Fatal(err)
	}
	w.locks = w.open(tracer)
	waited := w.wait("stock")
	w.lose("lost")
	_ = w.nodes.Stop(2)
	dead := w.node(2)
	w.eventually("the node's death is noticed", func() bool {
		w.release(w.acquire(w.locks, "busy"))
		return w.locks.Stats().Nodes[2].Condition == quorum.NodeSilent
	})
	if err := waited.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.locks.TryAcquire(t.Context(), "stock"); !errors.Is(err, quorum.ErrNotAcquired) {
		t.Fatal(err)
	}

	var f families
	w.eventually("the page tells of the dead node's votes", func() bool {
		f = scrape(t, page.Client(), page.URL)
		return f.sum("redquorum_votes_total", "node="+dead, "operation=renew", "error_type=unreachable") >= 1
	})
	for point, want := range map[string]float64{
		"redquorum_losses_total loss=revoked":                                           1,
		"redquorum_hold_duration_seconds outcome=lost":                                  1,
		"redquorum_wait_duration_seconds outcome=acquired":                              1,
		"redquorum_wait_place":                                                          1,
		"redquorum_acquire_duration_seconds operation=acquire outcome=acquired":         1,
		"redquorum_acquire_duration_seconds operation=try-acquire outcome=not-acquired": 1,
		"redquorum_held":                            1,
		"redquorum_waiting":                         0,
		"redquorum_quorum":                          2,
		"redquorum_node_condition condition=silent": 1,
		"redquorum_node_condition condition=silent node=" + dead: 1,
		"redquorum_node_condition condition=answering":           2,
	} {
		words := strings.Fields(point)
		if f[words[0]] == nil {
			t.Errorf("the page has no %s", words[0])
			continue
		}
		if got := f.sum(words[0], words[1:]...); got != want {
			t.Errorf("%s is %v on the page, want %v", point, got, want)
		}
	}
	// One connection may break before another has brought its last answer.
	if f.sum("redquorum_node_changes_total", "condition=silent", "node="+dead) < 1 {
		t.Error("the page does not tell that the node fell silent")
	}
	// The watchdog has made some of its own, since a node is missed.
	for _, outcome := range []string{"outcome=renewed", "outcome=missed"} {
		if f.sum("redquorum_renewals_total", outcome) < 1 {
			t.Errorf("the page has no renewal with the %s", outcome)
		}
	}
	// What the documentation says Prometheus calls them is what it calls them.
	for _, name := range documented(t) {
		if f[name.prometheus] == nil {
			t.Errorf("README.md calls a metric %s, and the page has none of that name", name.prometheus)
		}
	}
	for name := range f {
		if strings.HasPrefix(name, "redquorum") && !slices.ContainsFunc(documented(t), func(d document) bool { return d.prometheus == name }) {
			t.Errorf("the page has %s, and README.md does not", name)
		}
	}
	// One wait and one hold fell into some bucket below half a minute.
	for _, name := range []string{"redquorum_wait_duration_seconds", "redquorum_hold_duration_seconds"} {
		for _, m := range f[name].GetMetric() {
			h := m.GetHistogram()
			if n := len(h.GetBucket()); n < 10 || h.GetSampleSum() <= 0 || h.GetSampleSum() > float64(time.Minute/time.Second) {
				t.Errorf("%s has %d buckets and the sum %v", name, n, h.GetSampleSum())
			}
		}
	}
}
