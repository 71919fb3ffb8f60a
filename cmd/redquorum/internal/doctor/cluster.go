package doctor

import (
	"fmt"
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
// that do not are found to be one by the first lock that is taken on both. (Their records do not tell: one client that begins
// several gives them one name.)
func (j *judgement) servers() {
	const check = "servers"
	same := map[string][]string{}
	known, nameless := 0, 0
	for _, f := range j.all {
		id := f.info["run_id"]
		switch {
		case id != "":
			known++
			same[id] = append(same[id], f.node)
		case f.err == nil && f.infoErr == nil: // else why it does not tell is told elsewhere
			nameless++
		}
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
		j.find(nil, Finding{
			Severity: Note, Check: check, Found: fmt.Sprintf("%d of %d tell which server they are", known, len(j.all)),
			Means: "Whether the others are servers of their own cannot be seen. If two of them are one, the first lock that is taken on both finds out, " +
				"and from then on clients take none (ErrSameServer).",
			Fix: "See to it that no two addresses lead to one server, by a proxy, a port forwarding or another database. (Redis tells by run_id in INFO server.)",
		})
	case known < 2 && known < len(j.all): // nothing can be said of what cannot be asked
	case known < len(j.all):
		j.ok(nil, check, "%d of %d are known to be different", known, len(j.all))
	default:
		j.ok(nil, check, "every address leads to a server of its own")
	}
}
