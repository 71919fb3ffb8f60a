package script

import (
	"fmt"
	"time"
)

// RecordKey is the key of a node's record: which server it is, and whether it may have forgotten something. See
// check.lua.
const RecordKey = "redquorum_node"

// Check asks whether the node is the one that its record tells of: see check.lua. Its reply is read by [ParseRecord].
type Check struct {
	// Fresh is the incarnation to begin, if one has to be begun: a text that was never used before.
	Fresh string
	// TTL is the longest that the client uses or has heard of.
	TTL time.Duration
	// Nodes is how many nodes the client is configured with.
	Nodes int
	// Durable tells whether the server writes everything to disk before it answers.
	Durable Durability
	// Lingers is for how long a server that Sentinel has replaced may go on voting: by so much is a quarantine longer than
	// the longest TTL. 0 means that no Sentinel says which server the node is.
	Lingers time.Duration
}

// Durability is whether a server writes everything to disk before it answers.
type Durability string

// What is known about it.
const (
	NotAsked   Durability = ""
	Durable    Durability = "yes"
	NotDurable Durability = "no"
)

func (Check) Script() *Script { return checkScript }
func (Check) keys(w *wire)    { w.word(RecordKey) }
func (r Check) args(w *wire) {
	w.word(r.Fresh)
	w.number(millis(r.TTL))
	w.number(int64(r.Nodes))
	w.word(string(r.Durable))
	w.number(millis(r.Lingers))
}

// Settle decides what an incarnation is worth that began without a record: see settle.lua.
type Settle struct {
	// Incarnation and Run are what a Check found.
	Incarnation, Run string
	// Quarantine is how long the node must not vote; 0 if it is new.
	Quarantine time.Duration
	TTL        time.Duration
	Nodes      int
	Durable    Durability
	Lingers    time.Duration // see Check
}

func (Settle) Script() *Script { return settleScript }
func (Settle) keys(w *wire)    { w.word(RecordKey) }
func (r Settle) args(w *wire) {
	w.word(r.Incarnation)
	w.word(r.Run)
	w.number(millis(r.Quarantine))
	w.number(millis(r.TTL))
	w.number(int64(r.Nodes))
	w.word(string(r.Durable))
	w.number(millis(r.Lingers))
}

// A Standing is what a check found.
type Standing string

// The standings, as check.lua writes them.
const (
	StandingSettled   Standing = "settled"   // the record is this server's, or has been made so
	StandingUnsettled Standing = "unsettled" // there was no record; nobody has decided yet what that means
	StandingAsk       Standing = "ask"       // started again; tell whether it writes everything to disk
	StandingReplica   Standing = "replica"   // no master
	StandingUnguarded Standing = "unguarded" // behind Sentinel, and a replica may take over that has not got everything
)

// A Record is what a check answers with.
type Record struct {
	Standing Standing
	// Incarnation is one stretch of the node's memory, without a gap.
	Incarnation string
	// Run is the server's own name for one run of its process; empty if it does not tell.
	Run string
	// Quarantine is how long the node has yet to wait before it may vote for everybody.
	Quarantine time.Duration
	// TTL is the longest in use.
	TTL time.Duration
	// Nodes is how many nodes the client was configured with that checked before this one; 0 if there was none.
	Nodes int
	// Age is how long ago the incarnation began; negative if the node's clock was set back since.
	Age time.Duration
	// Now is the node's clock in microseconds since 1970.
	Now int64
	// Shortened is by how much this check has shortened the quarantine, which had begun while the node's clock was ahead.
	Shortened time.Duration
	// Evicts is the eviction policy if it may throw locks away; empty if it cannot, or the server does not tell.
	Evicts string
}

// ParseRecord reads what a check answered with.
func ParseRecord(v any) (Record, error) {
	fields, ok := v.([]any)
	if !ok || len(fields) != 10 {
		return Record{}, fmt.Errorf("script: want a record of 10 values, got %T of %d", v, len(fields))
	}
	standing, ok1 := fields[0].(string)
	incarnation, ok2 := fields[1].(string)
	run, ok3 := fields[2].(string)
	quarantine, ok4 := fields[3].(int64)
	longest, ok5 := fields[4].(int64)
	nodes, ok6 := fields[5].(int64)
	age, ok7 := fields[6].(int64)
	now, ok8 := fields[7].(int64)
	evicts, ok9 := fields[8].(string)
	shortened, ok10 := fields[9].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || !ok7 || !ok8 || !ok9 || !ok10 {
		return Record{}, fmt.Errorf("script: want {string, string, string, int, int, int, int, int, string, int}, got %v", fields)
	}
	return Record{
		Standing:    Standing(standing),
		Incarnation: incarnation,
		Run:         run,
		Quarantine:  ttl(quarantine),
		TTL:         ttl(longest),
		Nodes:       int(nodes),
		Age:         micros(age),
		Now:         now,
		Evicts:      evicts,
		Shortened:   ttl(shortened),
	}, nil
}

// micros reads a number of microseconds.
func micros(n int64) time.Duration {
	const most = int64(maxTTL / time.Microsecond)
	return time.Duration(min(max(n, -most), most)) * time.Microsecond
}
