package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

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
