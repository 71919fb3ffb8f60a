package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// commands judges whether all worked that a lock asks of a node.
func (j *judgement) commands(f *facts) {
	const check = "commands"
	switch {
	case errors.Is(f.tried, node.ErrReplica), errors.Is(f.tried, node.ErrUnguarded):
		return // see role
	case f.tried != nil:
	case refuses(f.lacks, "eval"):
		j.find(f, Finding{
			Severity: Problem, Check: check, Found: word(f.lacks),
			Means: "A node that was restarted does not know the scripts of locks any more, and this user may not tell it: then it does not vote. " +
				"Clients that check the nodes when they start (Ping) refuse it today.",
			Fix: j.grant(f.lacks),
		})
		return
	case refuses(f.lacks, "pubsub|numsub", "pubsub"):
		j.find(f, Finding{
			Severity: Warning, Check: check, Found: word(f.lacks),
			Means: "Whether a Sentinel watches it cannot be seen: one that makes a replica master may bring back a server without the newest locks, " +
				"and two may hold one lock. Clients that check the nodes when they start (Ping) refuse it.",
			Fix: j.grant(f.lacks),
		})
		return
	default:
		j.ok(f, check, "all that it takes to take a lock and to give it back is permitted and works")
		return
	}
	finding := Finding{Severity: Problem, Check: check, Found: word(f.tried)}
	switch text := f.tried.Error(); {
	case node.Permanent(f.tried):
		finding.Means = "The user may not do what a lock needs, or the server does not know it: this node does not vote."
		finding.Fix = j.grant(f.tried)
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
	if f.tried != nil {
		return
	}
	finding := Finding{
		Severity: Warning, Check: check,
		Means: "Who waits for a lock does not hear of its release from this node. Where most nodes are like that it looks about once a second instead.",
		Fix:   "Look what keeps messages from getting through: a server that is busy, or a proxy that knows no SUBSCRIBE.",
	}
	why := f.deaf
	switch {
	case why != nil:
	case node.Permanent(f.lacks) && !refuses(f.lacks, "eval", "pubsub|numsub", "pubsub"): // see commands
		why = f.lacks
		finding.Means = "Who waits for a lock may not learn that its connection is dead, or does not get off a channel: a release is not heard of, or too many are."
	case f.lacks != nil && !node.Permanent(f.lacks):
		why = f.lacks
	case f.braces != nil:
		why = f.braces
		finding.Means = "Who waits for a lock with braces in its name ({eu}:stock) does not hear of its release from this node."
	default:
		j.ok(f, check, "releases are heard of")
		return
	}
	finding.Found = word(why)
	switch {
	case errors.Is(why, node.ErrTimeout):
		finding.Found = "a subscription to a lock's channel was not confirmed in time"
	case node.Permanent(why):
		finding.Fix = j.grant(why)
	}
	j.find(f, finding)
}

// refuses tells whether an error is that a user may not run one of some commands: every version of Redis says it like that.
func refuses(err error, commands ...string) bool {
	return err != nil && slices.ContainsFunc(commands, func(command string) bool {
		return strings.Contains(err.Error(), "NOPERM") && strings.Contains(err.Error(), "'"+command+"' command")
	})
}

// grant is what to do where a user may not do what locks need. Without a prefix, a scratch name is nobody's, and one who is
// confined to a prefix is rightly refused: to follow the advice would be to let him out.
func (j *judgement) grant(refused error) string {
	fix := "ACL SETUSER with the rule that is missing. All that are needed: redquorum doctor --acl '" + j.clients.Prefix + "'."
	text := refused.Error()
	if command := strings.Contains(text, " run ") || strings.Contains(text, "nknown"); j.clients.Prefix == "" && !command { // but a key or a channel
		return "If the user is confined to names with a prefix, examine with that (--prefix): it may lack nothing. Else: " + fix
	}
	return fix
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
