package otelquorum

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redquorum/redquorum/quorum"
)

// callerKey is the key under which the context of a call carries the span of its caller.
type callerKey struct{}

// TraceAcquireStart begins the span of a call.
func (t *Tracer) TraceAcquireStart(ctx context.Context, data quorum.TraceAcquireStartData) context.Context {
	caller := trace.SpanFromContext(ctx)
	ctx, _ = t.tracer.Start(ctx, "redquorum.acquire", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(t.cfg.attributes...),
		trace.WithAttributes(nameKey.String(data.Name), operationKey.String(data.Op)))
	return context.WithValue(ctx, callerKey{}, caller)
}

// TraceAcquireEnd ends it.
func (t *Tracer) TraceAcquireEnd(ctx context.Context, data quorum.TraceAcquireEndData) {
	how := outcome(data.Err, "acquired")
	operation, outcome := operationKey.String(data.Op), outcomeKey.String(how)
	option := t.about(data.Name, operation, outcome)
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(outcome)
	if data.Lease != nil {
		way := wayKey.String("nodes")
		switch {
		case data.Nested:
			way = wayKey.String("nested")
		case data.HandedOn:
			way = wayKey.String("handed-on")
		}
		option = t.about(data.Name, operation, outcome, way)
		span.SetAttributes(way, holderKey.String(data.Lease.Holder()), tokenKey.Int64(data.Lease.Token()))
	}
	t.in.acquire.Record(ctx, data.Elapsed.Seconds(), option)
	end(span, data.Err, how)
}

// end ends the span of a call.
func end(span trace.Span, err error, outcome string) {
	if err != nil && span.IsRecording() {
		span.SetAttributes(errorTypeKey.String(outcome), votesKey.StringSlice(votes(err)))
		if failed(outcome) {
			span.SetStatus(codes.Error, err.Error())
		}
	}
	span.End()
}

// TraceWaitStart adds an event to the call's span.
func (t *Tracer) TraceWaitStart(ctx context.Context, data quorum.TraceWaitStartData) context.Context {
	t.in.place.Record(ctx, int64(data.Place), t.about(data.Name))
	trace.SpanFromContext(ctx).AddEvent("redquorum.wait", trace.WithAttributes(placeKey.Int(data.Place)))
	return ctx
}

// TraceWaitEnd takes in how long the call has waited.
func (t *Tracer) TraceWaitEnd(ctx context.Context, data quorum.TraceWaitEndData) {
	t.in.wait.Record(ctx, data.Elapsed.Seconds(), t.about(data.Name, outcomeKey.String(outcome(data.Err, "acquired"))))
	trace.SpanFromContext(ctx).SetAttributes(waitedKey.Float64(data.Elapsed.Seconds()))
}

// TraceAttempt adds an event to the call's span.
func (t *Tracer) TraceAttempt(ctx context.Context, data quorum.TraceAttemptData) {
	how := outcome(data.Err, "acquired")
	if data.Split {
		how = "split"
	}
	t.in.attempts.Add(ctx, 1, t.about(data.Name, outcomeKey.String(how)))
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("redquorum.attempt", trace.WithAttributes(outcomeKey.String(how),
			elapsedKey.Float64(data.Elapsed.Seconds()), votesKey.StringSlice(votes(data.Err))))
	}
}
