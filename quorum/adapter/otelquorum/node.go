package otelquorum

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redquorum/redquorum/quorum"
)

// A voteKey is what tells votes apart.
type voteKey struct{ node, operation, outcome, errorType string }

// voteAttributes are the attributes of votes, made once: there are a few votes to every call, and never many kinds of them.
type voteAttributes struct {
	mu  sync.RWMutex
	all map[voteKey]metric.MeasurementOption
}

// of returns the attributes of a vote.
func (va *voteAttributes) of(k voteKey, t *Tracer) metric.MeasurementOption {
	va.mu.RLock()
	option, ok := va.all[k]
	va.mu.RUnlock()
	if ok {
		return option
	}
	attributes := []attribute.KeyValue{nodeKey.String(k.node), operationKey.String(k.operation), outcomeKey.String(k.outcome)}
	if k.errorType != "" {
		attributes = append(attributes, errorTypeKey.String(k.errorType))
	}
	option = t.with(attributes...)
	va.mu.Lock()
	defer va.mu.Unlock()
	if va.all == nil {
		va.all = make(map[voteKey]metric.MeasurementOption)
	}
	va.all[k] = option
	return option
}

// TraceVote counts a vote, and how long it took if it is an answer.
func (t *Tracer) TraceVote(data quorum.TraceVoteData) {
	v := data.Vote
	option := t.votes.of(voteKey{v.Node, data.Op, v.Outcome.String(), errorType(v.Err)}, t)
	t.in.votes.Add(context.Background(), 1, option)
	if v.Err == nil && v.Elapsed > 0 {
		t.in.vote.Record(context.Background(), v.Elapsed.Seconds(), option)
	}
}

// TraceNode counts a change.
func (t *Tracer) TraceNode(data quorum.TraceNodeData) {
	t.in.changes.Add(context.Background(), 1, t.with(nodeKey.String(data.Node), conditionKey.String(data.Condition.String())))
}

// TraceOpen begins to observe a coordinator's gauges.
func (t *Tracer) TraceOpen(c *quorum.Coordinator) {
	t.opening.Lock()
	defer t.opening.Unlock()
	t.mu.Lock()
	t.coordinators = append(t.coordinators, c)
	t.mu.Unlock()
	if t.registration != nil {
		return
	}
	in := t.in
	r, err := t.meter.RegisterCallback(t.observe, in.held, in.waiting, in.quorum, in.condition, in.roundTrip)
	if err != nil {
		otel.Handle(err)
		return
	}
	t.registration = r
}

// TraceClose ends that.
func (t *Tracer) TraceClose(c *quorum.Coordinator) {
	t.opening.Lock()
	defer t.opening.Unlock()
	t.mu.Lock()
	t.coordinators = slices.DeleteFunc(t.coordinators, func(o *quorum.Coordinator) bool { return o == c })
	left := len(t.coordinators)
	t.mu.Unlock()
	if left > 0 || t.registration == nil {
		return
	}
	if err := t.registration.Unregister(); err != nil {
		otel.Handle(err)
	}
	t.registration = nil
}

// observe reads the gauges. What several coordinators hold and wait for is added up; of a node that they see differently the
// worst counts.
func (t *Tracer) observe(_ context.Context, o metric.Observer) error {
	t.mu.Lock()
	coordinators := slices.Clone(t.coordinators)
	t.mu.Unlock()
	held, waiting, size := 0, 0, 0
	nodes := map[string]quorum.NodeStats{}
	for _, c := range coordinators {
		s := c.Stats()
		held, waiting, size = held+s.Held, waiting+s.Waiting, max(size, s.Quorum)
		for _, n := range s.Nodes {
			if seen, ok := nodes[n.Node]; !ok || seen.Condition < n.Condition {
				nodes[n.Node] = n
			}
		}
	}
	o.ObserveInt64(t.in.held, int64(held), t.with())
	o.ObserveInt64(t.in.waiting, int64(waiting), t.with())
	o.ObserveInt64(t.in.quorum, int64(size), t.with())
	for name, n := range nodes {
		for is := quorum.NodeUntried; is <= quorum.NodeSilent; is++ {
			one := int64(0)
			if is == n.Condition {
				one = 1
			}
			o.ObserveInt64(t.in.condition, one, t.with(nodeKey.String(name), conditionKey.String(is.String())))
		}
		if n.RoundTrip > 0 {
			o.ObserveFloat64(t.in.roundTrip, n.RoundTrip.Seconds(), t.with(nodeKey.String(name)))
		}
	}
	return nil
}
