package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// number judges how many nodes there are.
func (j *judgement) number() {
	n := len(j.all)
	finding := Finding{
		Severity: Warning, Check: "number",
		Found: fmt.Sprintf("%d nodes, of which %d may be down, hang or forget", n, (n-1)/2),
	}
	switch {
	case n == 1:
		finding.Found = "1 node, which may not be down, nor hang or forget"
		finding.Means = "A lock with a single point of failure: without this server nobody gets a lock, and while it is restarted all locks end."
		finding.Fix = "Three independent masters bear the loss of one, five that of two."
	case n == 2:
		finding.Found = "2 nodes, of which none may be down, hang or forget"
		finding.Means = "Both are needed for a quorum, so two fail more often than one alone."
		finding.Fix = "Add a third (docs/nodes.md tells how, while clients run), or go without the second."
	case n%2 == 0:
		finding.Means = fmt.Sprintf("A quorum is %d, so %d nodes bear no more failures than %d do, and have one more that can fail.", n/2+1, n, n-1)
		finding.Fix = "Take an odd number of nodes. docs/nodes.md tells how to add or remove one while clients run."
	default:
		finding.Severity = OK
	}
	j.find(nil, finding)
}

// times judges the clients' times among each other. Against the round trips they are judged by answers.
func (j *judgement) times() {
	const check = "times"
	c := j.clients
	drift := clock.Drift(c.TTL, c.DriftFactor, c.Clock.Uncertainty())
	found := fmt.Sprintf("TTL %v, node timeout %v, drift %v", c.TTL, c.NodeTimeout, drift.Round(time.Millisecond))
	if err := c.Validate(); err != nil {
		j.find(nil, Finding{
			Severity: Problem, Check: check, Found: found,
			Means: "Clients refuse such times: " + strings.TrimPrefix(err.Error(), "redquorum: ") + ".",
			Fix:   "A longer TTL, or a shorter node timeout, which need not be much longer than the slowest round trip.",
		})
		return
	}
	j.ok(nil, check, "%s", found)
}

// servers judges whether every address leads to a server of its own. Servers tell who they are by the id of their run; two
// that do not are found to be one by the first lock that is taken on both.
func (j *judgement) servers() {
	const check = "servers"
	same := map[string][]string{}
	nameless := 0
	for _, f := range j.all {
		id := f.info["run_id"]
		if id == "" {
			nameless++
			continue
		}
		same[id] = append(same[id], f.node)
	}
	twice := false
	for _, f := range j.all { // in their order
		for id, nodes := range same {
			if len(nodes) > 1 && nodes[0] == f.node {
				twice = true
				delete(same, id)
				j.Findings = append(j.Findings, Finding{
					Severity: Problem, Check: check, Nodes: nodes,
					Found: fmt.Sprintf("%d addresses lead to one server", len(nodes)),
					Means: "A quorum of addresses is no quorum of servers: clients that notice take no lock (ErrSameServer).",
					Fix:   "Name each server once; look for a proxy, a name or a port forwarding that leads to the wrong one.",
				})
			}
		}
	}
	switch {
	case twice:
	case nameless > 0:
		j.ok(nil, check, "%d of %d are known to be different", len(j.all)-nameless, len(j.all))
	default:
		j.ok(nil, check, "every address leads to a server of its own")
	}
}

// apart is how far two clocks may be before it matters to tokens (quorum/attempt.go): further than that a proposal is
// corrected by the node, which takes a second round.
const apart = time.Second

// clocks judges what the nodes' clocks show. Exclusion does not depend on it, tokens do, where a counter was lost. Each node
// is compared with the one in the middle, as that is the likeliest to be right, and so is this machine.
func (j *judgement) clocks() {
	const check = "clocks"
	var seen []*facts
	for i := range j.all {
		if j.all[i].err == nil {
			seen = append(seen, &j.all[i])
		}
	}
	if len(seen) == 0 {
		return
	}
	between := func(f *facts) time.Duration { return (f.least + f.most) / 2 }
	sorted := slices.SortedFunc(slices.Values(seen), func(a, b *facts) int { return cmp.Compare(between(a), between(b)) })
	middle := sorted[len(sorted)/2]

	// What is certain of how far apart any two are, and what is possible.
	certain, possible, longest := time.Duration(0), time.Duration(0), j.clients.TTL
	for _, a := range seen {
		for _, b := range seen {
			if a != b {
				certain, possible = max(certain, a.least-b.most), max(possible, a.most-b.least)
			}
		}
		longest = max(longest, a.record.TTL)
	}
	bridged := max(0, longest-2*time.Second)
	if certain > apart && certain > bridged {
		j.find(nil, Finding{
			Severity: Problem, Check: check,
			Found: fmt.Sprintf("the nodes' clocks show times that are %v apart", rough(certain)),
			Means: fmt.Sprintf("A node that has forgotten its counter goes on from its clock, after a quarantine of %v, and that no longer bridges "+
				"the difference: its fencing tokens may be smaller than those given before. (Exclusion does not depend on it.)", longest),
			Fix: "Let NTP keep the clocks of the nodes named below. Where clocks are set while locks are held, restart nothing meanwhile.",
		})
	}
	off := false
	for _, f := range seen {
		if f.least-middle.most > apart || middle.least-f.most > apart {
			off = true
			j.find(f, Finding{
				Severity: Warning, Check: check,
				Found: fmt.Sprintf("its clock shows another time than the others': %v", signed(between(f)-between(middle))),
				Means: "Locks are safe, but their tokens take a second round trip, and a counter that is lost may go back by the difference.",
				Fix:   "Let NTP keep its clock. While that is being set back or forward the node does not vote (ErrClock).",
			})
		}
	}
	if middle.least > apart || middle.most < -apart {
		off = true
		j.find(nil, Finding{
			Severity: Warning, Check: check,
			Found: fmt.Sprintf("this machine's clock shows another time than the nodes': %v", signed(-between(middle))),
			Means: "Clients on this machine propose tokens that the nodes correct, which takes a second round trip. Locks are safe.",
			Fix:   "Let NTP keep this machine's clock.",
		})
	}
	if !off && certain <= apart {
		j.ok(nil, check, "all show the same time, to within %v", rough(max(possible, middle.most-middle.least)))
	}
}

// signed writes a difference with its sign, as a clock's owner would.
func signed(d time.Duration) string {
	if d < 0 {
		return fmt.Sprintf("%v behind", rough(-d))
	}
	return fmt.Sprintf("%v ahead", rough(d))
}

// rough writes a time with no more figures than anybody reads.
func rough(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Microsecond; unit /= 10 {
		if d >= 100*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Microsecond)
}
