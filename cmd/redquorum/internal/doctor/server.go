package doctor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redquorum/redquorum/node"
)

// tested is the oldest version of Redis that redquorum is tested with.
const tested = 7

// version is what the server says it is; empty if it does not.
func (f *facts) version() string {
	switch {
	case f.info["valkey_version"] != "":
		return "Valkey " + f.info["valkey_version"]
	case f.info["redis_version"] != "":
		return "Redis " + f.info["redis_version"]
	}
	return ""
}

// server judges what kind of server it is.
func (j *judgement) server(f *facts) {
	const check = "server"
	switch {
	case f.infoErr != nil:
		j.find(f, Finding{
			Severity: Note, Check: check, Found: "INFO: " + word(f.infoErr),
			Means: "Its version, its role and its memory could not be looked at.",
			Fix:   "Permit INFO. The restart guard needs it, too.",
		})
		return
	case f.version() == "":
		j.find(f, Finding{
			Severity: Note, Check: check, Found: "it does not tell its version",
			Means: "It is none of the servers that redquorum is tested with, or one of those embedded for tests, which keep nothing.",
			Fix:   "For locks that matter, a Redis of version " + strconv.Itoa(tested) + " or later.",
		})
		return
	}
	if mode := f.info["redis_mode"]; mode != "" && mode != "standalone" {
		j.find(f, Finding{
			Severity: Problem, Check: check, Found: fmt.Sprintf("%s in %s mode", f.version(), mode),
			Means: "A node is a master on its own. A cluster moves keys, fails over to replicas that have not got everything, and refuses " +
				"scripts whose keys lie on several of its servers; a Sentinel has no keys at all.",
			Fix: "Independent servers, without cluster-enabled; not the port of a Sentinel.",
		})
		return
	}
	if major, _, _ := strings.Cut(f.info["redis_version"], "."); olderThan(major, tested) {
		j.find(f, Finding{
			Severity: Note, Check: check, Found: f.version(),
			Means: fmt.Sprintf("It is older than %d.0, the oldest that redquorum is tested with.", tested),
			Fix:   "Update it, one node at a time, a TTL apart.",
		})
		return
	}
	j.ok(f, check, "%s", f.version())
}

func olderThan(major string, than int) bool {
	n, err := strconv.Atoi(major)
	return err == nil && n < than
}

// role judges whether it is a master, and may stay one.
func (j *judgement) role(f *facts) {
	const check = "role"
	replica := f.info["role"] == "slave" || errors.Is(f.tried, node.ErrReplica)
	switch {
	case replica:
		found := "a replica"
		if host := f.info["master_host"]; host != "" {
			found += " of " + host + ":" + f.info["master_port"]
		}
		j.find(f, Finding{
			Severity: Problem, Check: check, Found: found,
			Means: "A lock must not be taken on a replica: what it is told its master may not know. It does not vote.",
			Fix:   "Name its master instead, or make it one (REPLICAOF NO ONE); it then sits out a quarantine.",
		})
	case errors.Is(f.tried, node.ErrUnguarded):
		j.find(f, Finding{
			Severity: Problem, Check: check, Found: "a master that a Sentinel watches, with min-replicas-to-write 0",
			Means: "It answers before any replica has the data, and the replica that takes over would not know of the lock. It does not vote.",
			Fix:   "CONFIG SET min-replicas-to-write 1, or no Sentinel: a quorum of nodes bears the loss of one without it.",
		})
	case f.info["role"] == "":
		// That is told above: INFO was refused, or knows no role.
	default:
		j.ok(f, check, "master")
	}
}

// memory judges whether locks may be thrown away.
func (j *judgement) memory(f *facts) {
	const check = "memory"
	policy := f.info["maxmemory_policy"]
	limit, err := strconv.ParseInt(f.info["maxmemory"], 10, 64)
	switch {
	case err != nil:
		// As in role.
	case limit == 0:
		j.ok(f, check, "no maxmemory, so nothing is evicted")
	case policy == "noeviction":
		j.ok(f, check, "maxmemory %s, and noeviction", f.info["maxmemory_human"])
	default:
		j.find(f, Finding{
			Severity: Warning, Check: check, Found: fmt.Sprintf("maxmemory %s with maxmemory-policy %s", f.info["maxmemory_human"], policy),
			Means: "When its memory is full it may throw locks away, which nobody notices: then two may hold one lock. (Locks have a TTL, so the " +
				"volatile- policies are no better.)",
			Fix: "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf. Locks take some hundred bytes each: give them a server of their own.",
		})
	}
}

// persistence judges what a restart means.
func (j *judgement) persistence(f *facts) {
	const check = "persistence"
	finding := Finding{Severity: Note, Check: check, Fix: "Restart nodes one at a time, a TTL apart. Or let it write everything before it answers: appendonly yes, " +
		"appendfsync always, no-appendfsync-on-rewrite no; then it votes at once."}
	const waits = " So after a restart it does not vote for as long as the longest TTL in use, and its locks are put back by their holders."
	s := f.settings
	switch {
	case f.settingsErr != nil:
		finding.Found = "CONFIG GET: " + word(f.settingsErr)
		finding.Means = "Whether it writes locks to disk cannot be seen, so clients take it for a server that does not." + waits
		finding.Fix = "Permit CONFIG GET (CONFIG|GET, from Redis 7), if it does; else there is nothing to be done."
	case s["appendonly"] == "yes" && s["appendfsync"] == "always" && s["no-appendfsync-on-rewrite"] == "no":
		j.ok(f, check, "everything is on disk before it is answered: it votes at once after a restart")
		return
	case s["appendonly"] == "yes" && s["appendfsync"] == "always":
		finding.Found = "appendfsync always, but no-appendfsync-on-rewrite yes"
		finding.Means = "While the log is rewritten it answers before anything is on disk." + waits
	case s["appendonly"] == "yes":
		finding.Found = "appendonly with appendfsync " + s["appendfsync"]
		finding.Means = "What it answered last may be lost by a crash." + waits
	case s["save"] != "":
		finding.Found = "snapshots only (save " + s["save"] + ")"
		finding.Means = "It comes back with what was there at the last snapshot." + waits
	default:
		finding.Found = "nothing is written to disk"
		finding.Means = "It comes back empty." + waits
	}
	j.find(f, finding)
}
