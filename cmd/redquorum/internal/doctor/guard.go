package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// commands judges whether all worked that a lock asks of a node.
func (j *judgement) commands(f *facts) {
	const check = "commands"
	switch {
	case f.tried == nil:
		j.ok(f, check, "all that locks need are permitted and work")
		return
	case errors.Is(f.tried, node.ErrReplica), errors.Is(f.tried, node.ErrUnguarded):
		return // see role
	}
	finding := Finding{Severity: Problem, Check: check, Found: word(f.tried)}
	switch text := f.tried.Error(); {
	case node.Permanent(f.tried):
		finding.Means = "The user may not do what a lock needs, or the server does not know it: this node does not vote."
		finding.Fix = "ACL SETUSER with what is missing: the command that is named, or where it says \"keys\" or \"channels\" the name of the lock, " +
			"redquorum_* and redisson_lock__channel:*."
	case errors.Is(f.tried, node.ErrTimeout):
		finding.Means = "It tells the time, and does not get to do anything in time."
		finding.Fix = "Look at what keeps it busy: SLOWLOG GET, LATENCY DOCTOR, a full disk."
	case strings.Contains(text, "MISCONF"):
		finding.Means = "It could not write to its disk, and takes no writes until it can."
		finding.Fix = "Look at the disk and at its log; or, if nothing has to be on disk, CONFIG SET stop-writes-on-bgsave-error no."
	case strings.Contains(text, "OOM"):
		finding.Means = "Its memory is full, and it takes no writes. That is better than evicting locks."
		finding.Fix = "More maxmemory, or a server of their own for locks."
	case strings.Contains(text, "NOREPLICAS"):
		finding.Means = "Too few replicas are connected (min-replicas-to-write), and it takes no writes."
		finding.Fix = "Look at its replicas."
	default:
		finding.Means = "What a lock asks of a node does not work: it does not vote."
		finding.Fix = "Look at the server's log."
	}
	j.find(f, finding)
}

// messages judges whether who waits hears of releases.
func (j *judgement) messages(f *facts) {
	const check = "messages"
	switch {
	case f.tried != nil:
	case f.deaf:
		j.find(f, Finding{
			Severity: Warning, Check: check, Found: "a subscription to a lock's channel was not confirmed",
			Means: "Who waits for a lock does not hear of its release from this node. Where most nodes are like that it looks about once a second instead.",
			Fix:   "Permit SUBSCRIBE, UNSUBSCRIBE and PING, and the channels redisson_lock__channel:* (ACL SETUSER ... &redisson_lock__channel:*).",
		})
	default:
		j.ok(f, check, "releases are heard of")
	}
}

// guard judges what is on record of the node for the restart guard.
func (j *judgement) guard(f *facts) {
	const check = "restart guard"
	if f.tried != nil {
		return
	}
	if n := f.recorded["nodes"]; n != "" && n != "0" && n != fmt.Sprint(len(j.all)) {
		j.find(f, Finding{
			Severity: Warning, Check: check, Found: fmt.Sprintf("a client was configured with %s nodes, and these are %d", n, len(j.all)),
			Means: "Clients that do not agree on the nodes may hold one lock together.",
			Fix:   "Name all nodes, here and in every client. docs/nodes.md tells how to change them while clients run.",
		})
	}
	switch r := f.record; {
	case r.Quarantine > 0:
		j.find(f, Finding{
			Severity: Warning, Check: check, Found: fmt.Sprintf("in quarantine, for %v", r.Quarantine.Round(time.Second)),
			Means: "It was restarted, flushed, or its replication has changed, and it may have forgotten locks: until that no longer matters it does not " +
				"vote for new ones.",
			Fix: "Wait, and let no other node down meanwhile.",
		})
	case r.Standing == script.StandingUnsettled && j.isNew():
		j.ok(f, check, "new: nobody has taken a lock here yet")
	case r.Standing == script.StandingUnsettled:
		j.find(f, Finding{
			Severity: Warning, Check: check, Found: "no record, though other nodes have one, or cannot be asked",
			Means: fmt.Sprintf("It is new among them, or has forgotten everything. From when the first client decides that, which takes a quorum of nodes, "+
				"it does not vote for %v.", max(j.clients.TTL, r.TTL)),
			Fix: "Wait, and let no other node down meanwhile.",
		})
	default:
		j.ok(f, check, "it votes; the longest TTL on record is %v", r.TTL)
	}
}
