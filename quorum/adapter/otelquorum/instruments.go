package otelquorum

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are the metrics; doc.go has their table.
type instruments struct {
	acquire, wait, hold, release, vote metric.Float64Histogram
	place                              metric.Int64Histogram

	attempts, losses, renewals, votes, changes metric.Int64Counter

	held, waiting     metric.Int64ObservableUpDownCounter
	quorum, condition metric.Int64ObservableGauge
	roundTrip         metric.Float64ObservableGauge
}

// Bounds of the histograms' buckets, in seconds. Nodes are asked over a local network, so a call takes a millisecond or some;
// one that waits takes as long as others hold the lock; and that may be anything from a millisecond to a day.
var (
	callBounds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}
	waitBounds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	holdBounds = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400}

	placeBounds = []float64{0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// newInstruments makes the instruments.
func newInstruments(m metric.Meter) (*instruments, error) {
	var all error
	seconds := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		all = errors.Join(all, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all = errors.Join(all, err)
		return c
	}
	sum := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		c, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all = errors.Join(all, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		all = errors.Join(all, err)
		return g
	}
	in := &instruments{
		acquire: seconds("redquorum.acquire.duration", "How long calls took that ask for a lock.", waitBounds),
		wait:    seconds("redquorum.wait.duration", "How long calls waited that could not have the lock at once.", waitBounds),
		hold:    seconds("redquorum.hold.duration", "How long locks were held.", holdBounds),
		release: seconds("redquorum.release.duration", "How long calls took that give a lock back.", callBounds),
		vote:    seconds("redquorum.vote.duration", "How long nodes took to answer.", callBounds),

		attempts: counter("redquorum.attempts", "{attempt}", "Tries to get the votes of a quorum."),
		losses:   counter("redquorum.losses", "{lock}", "Locks that were lost."),
		renewals: counter("redquorum.renewals", "{renewal}", "Renewals of locks that are held."),
		votes:    counter("redquorum.votes", "{vote}", "Answers of nodes, and lacks of one."),
		changes:  counter("redquorum.node.changes", "{change}", "How often a node came into a condition."),

		held:      sum("redquorum.held", "{lock}", "Locks that are held."),
		waiting:   sum("redquorum.waiting", "{call}", "Calls that wait for a lock."),
		quorum:    gauge("redquorum.quorum", "{node}", "How many nodes make a quorum."),
		condition: gauge("redquorum.node.condition", "{node}", "1 for the condition that a node is in, 0 for the others."),
	}
	var err error
	in.place, err = m.Int64Histogram("redquorum.wait.place", metric.WithUnit("{call}"),
		metric.WithDescription("How many calls of the process came before one that had to wait."),
		metric.WithExplicitBucketBoundaries(placeBounds...))
	all = errors.Join(all, err)
	in.roundTrip, err = m.Float64ObservableGauge("redquorum.node.round_trip", metric.WithUnit("s"),
		metric.WithDescription("How long a node's answers take, smoothed."))
	all = errors.Join(all, err)
	return in, all
}
