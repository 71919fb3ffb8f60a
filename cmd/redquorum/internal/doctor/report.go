package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Severity says how bad a finding is.
type Severity int

// The severities.
const (
	// OK is as it should be.
	OK Severity = iota
	// Note is worth knowing, and may well be meant.
	Note
	// Warning is what works today, and will not on a bad day.
	Warning
	// Problem is what keeps locks from working, or from being safe.
	Problem
)

var severities = []string{"ok", "note", "warning", "problem"}

// String returns the severity in lower case.
func (s Severity) String() string {
	if s < OK || s > Problem {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return severities[s]
}

// MarshalText writes a severity as String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Finding is what one check found.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is what was looked at, such as "persistence".
	Check string `json:"check"`
	// Nodes are those that it is about; none if it is about all of them together.
	Nodes []string `json:"nodes,omitempty"`
	// Found is what is so.
	Found string `json:"found"`
	// Means is what follows from it for locks, and Fix what to do; both are empty if it is OK.
	Means string `json:"means,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// Node is a node in figures.
type Node struct {
	Node string `json:"node"`
	// Answers tells whether the node could be talked to.
	Answers bool `json:"answers"`
	// Votes tells whether it would vote for a lock now.
	Votes bool `json:"votes"`
	// RoundTrip is the median of several, in milliseconds.
	RoundTrip float64 `json:"round_trip_ms,omitempty"`
	// Ahead is by how much the node's clock is ahead of this machine's, in milliseconds, give or take half a round trip.
	Ahead float64 `json:"clock_ahead_ms,omitempty"`
	// Version is the server's; empty if it does not tell.
	Version string `json:"version,omitempty"`
}

// A Report is all that was found.
type Report struct {
	// Quorum is how many nodes have to vote for a lock, and Voting how many would now.
	Quorum int `json:"quorum"`
	Voting int `json:"voting"`
	// Nodes are in the order in which they were named.
	Nodes []Node `json:"nodes"`
	// Findings are about all nodes first, then about each.
	Findings []Finding `json:"findings"`
}

// Worst is the severity of the worst finding.
func (r Report) Worst() Severity {
	worst := OK
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// Summary sums a report up in one line.
func (r Report) Summary() string {
	n := make([]int, len(severities))
	for _, f := range r.merged() {
		n[f.Severity]++
	}
	var counts []string
	for s := Problem; s > OK; s-- {
		switch n[s] {
		case 0:
		case 1:
			counts = append(counts, fmt.Sprintf("1 %v", s))
		default:
			counts = append(counts, fmt.Sprintf("%d %vs", n[s], s))
		}
	}
	said := strings.Join(counts, ", ")
	if said == "" {
		said = "all is well"
	}
	return fmt.Sprintf("%d of %d nodes vote, and a quorum is %d; %s.", r.Voting, len(r.Nodes), r.Quorum, said)
}

// merged are the findings, those that say the same of several nodes in one.
func (r Report) merged() (all []Finding) {
	for _, f := range r.Findings {
		i := slices.IndexFunc(all, func(g Finding) bool {
			return len(f.Nodes) > 0 && len(g.Nodes) > 0 &&
				f.Severity == g.Severity && f.Check == g.Check && f.Found == g.Found && f.Means == g.Means && f.Fix == g.Fix
		})
		if i < 0 {
			f.Nodes = slices.Clone(f.Nodes)
			all = append(all, f)
			continue
		}
		all[i].Nodes = append(all[i].Nodes, f.Nodes...)
	}
	return all
}

// advice are the merged findings that are not OK, the worst first.
func (r Report) advice() []Finding {
	all := slices.DeleteFunc(r.merged(), func(f Finding) bool { return f.Severity == OK })
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return all
}

// milliseconds writes a time as JSON has it.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
