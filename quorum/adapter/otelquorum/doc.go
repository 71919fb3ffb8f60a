// Package otelquorum tells OpenTelemetry what a coordinator of package quorum does: metrics that a Prometheus endpoint can
// serve, and spans.
//
//	tracer, err := otelquorum.New() // the global providers; WithMeterProvider, WithTracerProvider for others
//	...
//	locks, err := quorum.Open(quorum.Config{Tracer: tracer}, urls...)
//
// It is a module of its own, so that OpenTelemetry is no requirement of the library.
//
// # Metrics
//
// Durations are histograms in seconds. All attributes have few values, so that the number of time series does not grow with
// the number of locks: metrics do not tell locks apart, unless [WithLockAttribute] maps their names to a few classes
// (redquorum.lock, on those marked with *).
//
//	redquorum.acquire.duration *  calls that ask for a lock: operation, outcome, way
//	redquorum.wait.duration *     how long those waited that could not have it at once: outcome
//	redquorum.wait.place *        how many calls of the process came before them
//	redquorum.attempts *          tries to get a quorum's votes: outcome
//	redquorum.hold.duration *     how long a lock was held: outcome
//	redquorum.renewals *          renewals of what is held: outcome
//	redquorum.losses *            locks that were lost: loss
//	redquorum.release.duration *  calls that give a lock back: outcome
//	redquorum.votes               nodes' answers, and lacks of one: node, operation, outcome, error.type
//	redquorum.vote.duration       how long the answers took: node, operation, outcome
//	redquorum.held                locks that are held now
//	redquorum.waiting             calls that wait now: the length of the queue
//	redquorum.quorum              how many nodes make a quorum
//	redquorum.node.condition      1 for the condition that a node is in, 0 for the others: node, condition
//	redquorum.node.changes        how often a node came into a condition: node, condition
//	redquorum.node.round_trip     how long a node's answers take, smoothed: node
//
// Attributes are called redquorum.operation and so on; README.md, beside this file, lists their values, the names under which
// Prometheus has the metrics, and what to alert on.
//
// # Spans
//
//   - redquorum.acquire is the call: with the outcome, an event for the beginning of a wait and one for every attempt with what
//     each node said, and how long it waited.
//   - redquorum.hold is the time for which the lock was held, with an event for every renewal that failed. It is a child of the
//     span in which the call was made, as that of the call is, and has a link to the latter: a hold outlives the call that got
//     it. A lost lease makes it an error.
//   - redquorum.release is the call that gives the lock back.
//
// They carry the lock's name, the holder and the fencing token.
//
// # What is guaranteed
//
//   - Nothing blocks: a measurement or a span is handed to the SDK, and what that does with it, it does elsewhere.
//   - No attribute, event or status contains a node's credentials.
//   - Gauges are read when they are collected, from [quorum.Coordinator.Stats]. No node is asked for them.
//
// # What is not
//
//   - A span is only exported when it ends: a lock that is held now has none yet, and one that is held for days shows late
//     ([WithoutHoldSpans]). Look at redquorum.held.
//   - What a process measured since the last export is lost with it, losses of locks included.
//   - Coordinators of one Tracer are added up, and of a node they share the worst condition counts. For different clusters make
//     a Tracer each, with an attribute ([WithAttributes]).
package otelquorum
