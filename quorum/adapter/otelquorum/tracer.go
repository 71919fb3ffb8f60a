package otelquorum

import (
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/redquorum/redquorum/quorum"
)

// scope is the name of the instrumentation.
const scope = "github.com/redquorum/redquorum/quorum/adapter/otelquorum"

// A Tracer turns what a coordinator tells into metrics and spans. It goes into quorum.Config's Tracer, of one coordinator or of
// several on the same nodes, and is safe for concurrent use.
type Tracer struct {
	cfg    config
	meter  metric.Meter
	tracer trace.Tracer
	in     *instruments
	votes  voteAttributes

	opening      sync.Mutex          // held while a coordinator comes or goes; a reader may have a mutex of its own meanwhile
	registration metric.Registration // of the gauges, while there is a coordinator; guarded by opening

	mu           sync.Mutex
	coordinators []*quorum.Coordinator
}

var _ interface {
	quorum.AcquireTracer
	quorum.WaitTracer
	quorum.AttemptTracer
	quorum.HoldTracer
	quorum.ReleaseTracer
	quorum.RenewalTracer
	quorum.LossTracer
	quorum.VoteTracer
	quorum.NodeTracer
	quorum.CoordinatorTracer
} = (*Tracer)(nil)

// New returns a Tracer. It fails if an option is refused, or the meter provider refuses an instrument.
func New(options ...Option) (*Tracer, error) {
	cfg, err := newConfig(options)
	if err != nil {
		return nil, err
	}
	t := &Tracer{cfg: cfg, meter: cfg.meters.Meter(scope), tracer: cfg.tracers.Tracer(scope)}
	if t.in, err = newInstruments(t.meter); err != nil {
		return nil, fmt.Errorf("otelquorum: %w", err)
	}
	return t, nil
}

// with are the attributes of a measurement.
func (t *Tracer) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(slices.Concat(t.cfg.attributes, attributes)...))
}

// about are those of one about a lock.
func (t *Tracer) about(name string, attributes ...attribute.KeyValue) metric.MeasurementOption {
	if t.cfg.lock != nil {
		if class := t.cfg.lock(name); class != "" {
			attributes = append(attributes, lockKey.String(class))
		}
	}
	return t.with(attributes...)
}
