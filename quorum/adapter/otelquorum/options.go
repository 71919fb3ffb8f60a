package otelquorum

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// An Option changes what a Tracer tells, and whom.
type Option func(*config) error

// config is what the options make.
type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider

	attributes []attribute.KeyValue
	lock       func(name string) string // nil: metrics do not tell locks apart
	holds      bool
}

// newConfig applies the options to the defaults.
func newConfig(options []Option) (config, error) {
	cfg := config{holds: true}
	for i, option := range options {
		if option == nil {
			return cfg, fmt.Errorf("otelquorum: option %d is nil", i)
		}
		if err := option(&cfg); err != nil {
			return cfg, err
		}
	}
	if cfg.meters == nil {
		cfg.meters = otel.GetMeterProvider()
	}
	if cfg.tracers == nil {
		cfg.tracers = otel.GetTracerProvider()
	}
	return cfg, nil
}

// WithMeterProvider sends the metrics to a provider. The default is the global one, [otel.GetMeterProvider].
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errors.New("otelquorum: the meter provider is nil: want one, or leave the option out for the global one")
		}
		c.meters = p
		return nil
	}
}

// WithTracerProvider sends the spans to a provider. The default is the global one, [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errors.New("otelquorum: the tracer provider is nil: want one, or leave the option out for the global one")
		}
		c.tracers = p
		return nil
	}
}

// WithAttributes adds attributes to all metrics and spans: which cluster it is, for one, where a process uses several.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return func(c *config) error {
		for _, a := range attributes {
			if !a.Valid() {
				return fmt.Errorf("otelquorum: attribute %q is not valid: want a key and a value", a.Key)
			}
		}
		c.attributes = append(c.attributes, attributes...)
		return nil
	}
}

// WithLockAttribute adds the attribute redquorum.lock to the metrics about locks, with what class makes of the lock's name:
// "invoice" of "invoice-4711", say. Every value that it returns is a time series of its own for each of these metrics, kept
// for as long as the process lives, so it must map the names to a few; for "" the attribute is left out. It is called from
// many goroutines at once.
//
// By default metrics do not tell locks apart. Spans have the whole name, always.
func WithLockAttribute(class func(name string) string) Option {
	return func(c *config) error {
		if class == nil {
			return errors.New("otelquorum: WithLockAttribute without a function: want one that maps a lock's name to one of a few values")
		}
		c.lock = class
		return nil
	}
}

// WithoutHoldSpans leaves out the spans of holds. They are of use where locks are held for as long as a request takes; a span
// that takes days, as a leader's, is only seen when it is over.
func WithoutHoldSpans() Option {
	return func(c *config) error {
		c.holds = false
		return nil
	}
}
