package otelquorum

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redquorum/redquorum/quorum"
)

// TraceHoldStart begins the span of a hold. It is a child of the caller's span, as that of the call was, and outlives the
// call, to whose span it has a link.
func (t *Tracer) TraceHoldStart(ctx context.Context, data quorum.TraceHoldStartData) context.Context {
	call := trace.SpanContextFromContext(ctx)
	if caller, ok := ctx.Value(callerKey{}).(trace.Span); ok {
		ctx = trace.ContextWithSpan(ctx, caller)
	}
	if !t.cfg.holds {
		return ctx
	}
	options := []trace.SpanStartOption{
		trace.WithAttributes(t.cfg.attributes...),
		trace.WithAttributes(nameKey.String(data.Lease.Name()), holderKey.String(data.Lease.Holder()),
			tokenKey.Int64(data.Lease.Token())),
	}
	if call.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: call}))
	}
	ctx, _ = t.tracer.Start(ctx, "redquorum.hold", options...)
	return ctx
}

// TraceHoldEnd ends it.
func (t *Tracer) TraceHoldEnd(ctx context.Context, data quorum.TraceHoldEndData) {
	outcome := outcomeKey.String("released")
	if data.Loss != 0 {
		outcome = outcomeKey.String("lost")
	}
	t.in.hold.Record(ctx, data.Elapsed.Seconds(), t.about(data.Lease.Name(), outcome))
	if !t.cfg.holds {
		return
	}
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(outcome)
	if data.Loss != 0 {
		span.SetAttributes(lossKey.String(data.Loss.String()))
		span.SetStatus(codes.Error, "lease lost: "+data.Loss.String())
	}
	span.End()
}

// TraceRenewal adds an event to the span of the hold if the renewal failed. Those that work would fill the span of a lock
// that is held for long.
func (t *Tracer) TraceRenewal(ctx context.Context, data quorum.TraceRenewalData) {
	outcome := outcomeKey.String("renewed")
	if data.Err != nil {
		outcome = outcomeKey.String("missed")
	}
	t.in.renewals.Add(ctx, 1, t.about(data.Name, outcome))
	if span := trace.SpanFromContext(ctx); t.cfg.holds && data.Err != nil && span.IsRecording() {
		span.AddEvent("redquorum.renewal", trace.WithAttributes(outcome, elapsedKey.Float64(data.Elapsed.Seconds()),
			leftKey.Float64(data.Left.Seconds()), votesKey.StringSlice(votes(data.Err))))
	}
}

// TraceLoss counts a loss.
func (t *Tracer) TraceLoss(data quorum.TraceLossData) {
	t.in.losses.Add(context.Background(), 1, t.about(data.Name, lossKey.String(data.Loss.String())))
}

// TraceReleaseStart begins the span of a release.
func (t *Tracer) TraceReleaseStart(ctx context.Context, data quorum.TraceReleaseStartData) context.Context {
	ctx, _ = t.tracer.Start(ctx, "redquorum.release", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(t.cfg.attributes...),
		trace.WithAttributes(nameKey.String(data.Lease.Name()), holderKey.String(data.Lease.Holder()),
			tokenKey.Int64(data.Lease.Token())))
	return ctx
}

// TraceReleaseEnd ends it.
func (t *Tracer) TraceReleaseEnd(ctx context.Context, data quorum.TraceReleaseEndData) {
	how := outcome(data.Err, "released")
	if data.HandedOn {
		how = "handed-on"
	}
	outcome := outcomeKey.String(how)
	t.in.release.Record(ctx, data.Elapsed.Seconds(), t.about(data.Lease.Name(), outcome))
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(outcome)
	end(span, data.Err, how)
}
