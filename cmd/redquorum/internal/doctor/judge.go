package doctor

import (
	"fmt"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// judge makes a report of what was gathered, for clients of a configuration.
func judge(clients quorum.Config, all []facts) Report {
	j := &judgement{clients: clients, all: all}
	j.Quorum = len(all)/2 + 1
	for i := range all {
		f := &all[i]
		n := Node{Node: f.node, Answers: f.err == nil, Votes: j.votes(f)}
		if n.Answers {
			n.RoundTrip, n.Ahead, n.Version = milliseconds(f.median()), milliseconds((f.least+f.most)/2), f.version()
		}
		if n.Votes {
			j.Voting++
		}
		j.Nodes = append(j.Nodes, n)
	}
	j.number()
	j.times()
	j.servers()
	j.clocks()
	for i := range all {
		f := &all[i]
		j.answers(f)
		if f.err != nil {
			continue
		}
		j.server(f)
		j.role(f)
		j.persistence(f)
		j.memory(f)
		j.commands(f)
		j.messages(f)
		j.guard(f)
	}
	return j.Report
}

// judgement is a report that is being made.
type judgement struct {
	Report

	clients quorum.Config // with its defaults
	all     []facts
}

// find adds a finding about a node, or, where f is nil, about all of them together.
func (j *judgement) find(f *facts, finding Finding) {
	if f != nil {
		finding.Nodes = []string{f.node}
	}
	j.Findings = append(j.Findings, finding)
}

// ok adds a finding that is as it should be.
func (j *judgement) ok(f *facts, check, format string, args ...any) {
	j.find(f, Finding{Check: check, Found: fmt.Sprintf(format, args...)})
}

// votes tells whether a node would vote for a lock now. One without a record votes if none has one: then the first client
// finds a new cluster.
func (j *judgement) votes(f *facts) bool {
	switch {
	case f.err != nil || f.tried != nil || f.record.Quarantine > 0:
		return false
	case f.record.Standing == script.StandingUnsettled:
		return j.isNew()
	}
	return true
}

// isNew tells whether the nodes look like a cluster that nobody has used: all answer, and none has a record.
func (j *judgement) isNew() bool {
	for _, f := range j.all {
		if f.err != nil || f.tried != nil || f.record.Standing != script.StandingUnsettled {
			return false
		}
	}
	return true
}
