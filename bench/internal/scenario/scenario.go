// Package scenario is what is measured, and how.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/bench/internal/peers"
)

// An Env is what a run measures on.
type Env struct {
	Nodes    *nodes.Set
	Peers    []peers.Peer
	Duration time.Duration // of one measurement
	Quick    bool          // fewer callers, processes and leases

	// Prefix begins the names of all locks, so that runs on the same servers do not meet.
	Prefix string
}

// A Scenario is one question that is put to every peer.
type Scenario struct {
	Name  string
	Title string
	// About says what is done and what is measured, for the reader of the report.
	About string

	steps func(e *Env, p peers.Peer) []Step
}

// A Step is one measurement. Its result has Scenario, Peer and Nodes filled in by the runner.
type Step struct {
	Scenario string
	Peer     peers.Peer

	shape measure.Result // what is known beforehand
	run   func(ctx context.Context, r *measure.Result) error
}

// All are the scenarios, in the order in which they run.
func All() []Scenario {
	return []Scenario{
		{"single", "One caller",
			"Acquire and release, one after the other, of names that nobody else wants.", singleSteps},
		{"distinct", "Distinct names at rising concurrency",
			"Callers of one process, each with a name of its own.", distinctSteps},
		{"hot", "One hot name, one process",
			"Callers of one process that all want the same name. The latency is that of the acquire, waiting included.",
			hotSteps},
		{"handover", "Hand-over between two processes",
			"One process holds the name while the other waits; the latency is from the moment before the release to the " +
				"moment after the other's acquire.", handoverSteps},
		{"handover-hung", "Hand-over between two processes while a node hangs",
			"The same, while the first node is stopped. Clients of one server are left out.", handoverHungSteps},
		{"processes", "One hot name, many processes",
			"A caller in each of several processes; all want the same name. The latency is that of the acquire, waiting " +
				"included.", processesSteps},
		{"hung", "One node hangs",
			"Eight callers with names of their own, while the first node is stopped and continued. For a client of one " +
				"server it is that server.", hungSteps},
		{"killed", "Two nodes are killed",
			"Eight callers with names of their own, while the first node is killed, then the second. For a client of one " +
				"server the first is that server.", killedSteps},
		{"held", "Leases that are held",
			"Nothing is done with them but what keeps them alive. TTL and number are the same for all.", heldSteps},
	}
}

// Names are the scenarios' names.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Plan is all measurements of the scenarios that match.
func Plan(e *Env, which *regexp.Regexp) []Step {
	var plan []Step
	for _, s := range All() {
		if which != nil && !which.MatchString(s.Name) {
			continue
		}
		var steps []Step
		for _, p := range e.Peers {
			for _, step := range s.steps(e, p) {
				step.Scenario, step.Peer = s.Name, p
				steps = append(steps, step)
			}
		}
		// By question, not by client: what is compared is measured one right after the other.
		slices.SortStableFunc(steps, func(a, b Step) int { return a.shape.Callers - b.shape.Callers })
		plan = append(plan, steps...)
	}
	return plan
}

// stepGrace is what a measurement may take beside its duration: 10,000 leases have to be acquired first.
const stepGrace = time.Minute

// Run measures. A client that could not be measured has the reason in its result; the error is that of the run: ctx
// ended, or the client that this is all about failed.
func (s Step) Run(ctx context.Context, e *Env) (measure.Result, error) {
	r := s.shape
	r.Scenario, r.Peer, r.Nodes = s.Scenario, s.Peer.Name, s.Peer.Nodes(len(e.Nodes.URLs))
	if r.Skipped != "" {
		return r, nil
	}
	limit := 4*e.Duration + stepGrace
	bounded, cancel := context.WithTimeout(ctx, limit)
	err := s.run(bounded, &r)
	late := bounded.Err() != nil
	cancel()
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case late:
		err = errors.Join(fmt.Errorf("not done after %v", limit), err)
	}
	if err == nil {
		return r, nil
	}
	r = measure.Result{Scenario: r.Scenario, Peer: r.Peer, Nodes: r.Nodes, Callers: r.Callers, Processes: r.Processes,
		Skipped: "failed: " + err.Error()}
	if s.Peer.Name == peers.All()[0].Name {
		return r, fmt.Errorf("%s: %s: %w", s, s.Peer.Name, err)
	}
	return r, nil
}

func skipped(why string) []Step { return []Step{{shape: measure.Result{Skipped: why}}} }

// String says what is measured, but for the client.
func (s Step) String() string {
	if s.shape.Callers > 1 {
		return fmt.Sprintf("%s, %d callers", s.Scenario, s.shape.Callers)
	}
	return s.Scenario
}

// name begins the names of one measurement's locks.
func (e *Env) name(r *measure.Result) string {
	return fmt.Sprintf("%s:%s:%s:%d", e.Prefix, r.Scenario, r.Peer, r.Callers)
}
