package otelquorum_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/otelquorum"
)

// A program that serves its metrics to Prometheus.
func Example() {
	registry := prometheus.NewRegistry()
	exporter, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		log.Fatal(err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	defer func() { _ = provider.Shutdown(context.Background()) }()

	tracer, err := otelquorum.New(otelquorum.WithMeterProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := embedded.Start(5) // in production: five independent Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{Tracer: tracer}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	page := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) // in production: at /metrics
	defer page.Close()

	err = locks.Do(context.Background(), "stock", func(context.Context) error {
		answer, err := http.Get(page.URL)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "redquorum_held{") {
				words := strings.Fields(lines.Text())
				fmt.Println("locks that are held:", words[len(words)-1])
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output: locks that are held: 1
}
