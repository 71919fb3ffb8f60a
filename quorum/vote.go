package quorum

import (
	"errors"
	"fmt"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// An Outcome is what one node's answer means for the operation.
type Outcome int

// The outcomes of a vote.
const (
	// Unknown is a request that was sent, or may have been, and not answered yet or not in time. It may have taken
	// effect.
	Unknown Outcome = iota
	// Granted is a node that did what was asked.
	Granted
	// Held is a node where another holder has the lock, or a key of another type is in its place, or where the holder
	// was force-released.
	Held
	// Failed is a node that did not get the request, or refused it.
	Failed
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	switch o {
	case Unknown:
		return "unknown"
	case Granted:
		return "granted"
	case Held:
		return "held"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// A Vote is one node's answer.
type Vote struct {
	// Node is the node's name.
	Node string
	// Outcome is what the answer means.
	Outcome Outcome
	// Holder has the lock on this node; empty if nobody has, or nobody knows.
	Holder string
	// TTL is how long the lock lives on this node; -1 if it never expires.
	TTL time.Duration
	// Elapsed is the time from the start of the operation to the answer; 0 if there was none.
	Elapsed time.Duration
	// Err is why a vote is Failed or Unknown; nil for one that is not in yet.
	Err error
}

// String tells the vote in a few words.
func (v Vote) String() string {
	switch {
	case v.Err != nil:
		// A node's error begins with its name.
		var e *node.Error
		if errors.As(v.Err, &e) {
			return fmt.Sprintf("%s %v: %v", v.Node, v.Outcome, e.Err)
		}
		return fmt.Sprintf("%s %v: %v", v.Node, v.Outcome, v.Err)
	case v.Outcome == Held && v.Holder != "":
		return fmt.Sprintf("%s held by %s for %v", v.Node, v.Holder, v.TTL)
	}
	return fmt.Sprintf("%s %v", v.Node, v.Outcome)
}

// errExhausted is a fence that cannot grow any more.
var errExhausted = errors.New("the fencing counter has reached 2^53 and cannot grow")

// errTooLate is a request that reached its node after its last moment.
var errTooLate = errors.New("the request reached the node after its last moment")

// errUnsettled is a node without a record, see guard.go.
var errUnsettled = errors.New("the node has no record: it is new, or has forgotten everything")

// errStranger is a node that was restarted or flushed since it was checked.
var errStranger = errors.New("the node is not the one that was checked")

// quarantined is the error of a vote that does not count for another while.
func quarantined(left time.Duration) error { return fmt.Errorf("%w, for %v", ErrQuarantined, left) }

// answer is what one node said to one request: the vote, and what it was made of.
type answer struct {
	vote  Vote
	reply script.Reply
	err   error
	at    clock.Instant // when it came
	in    bool          // it did, on a ballot
}

// judge turns a reply, or an error, into a vote.
func judge(name string, reply script.Reply, err error, elapsed time.Duration) answer {
	v := Vote{Node: name, Holder: reply.Holder, TTL: reply.TTL, Elapsed: elapsed}
	switch {
	case err != nil:
		v.Outcome, v.Err = Failed, err
		if node.Sent(err) && !node.Refused(err) {
			v.Outcome = Unknown
		}
	default:
		switch reply.Status {
		case script.Already:
			// Every attempt has a holder of its own, and nothing is sent twice: somebody else was asked in our name.
			v.Outcome, v.Err = Failed, ErrSameServer
		case script.Granted, script.Renewed, script.Restored, script.Raised,
			script.Released, script.Stored, script.Absent, script.Probed, script.Settled:
			v.Outcome = Granted
		case script.Held, script.Revoked:
			v.Outcome = Held
		case script.Expired:
			v.Outcome, v.Err = Failed, errTooLate
		case script.Exhausted:
			v.Outcome, v.Err = Failed, errExhausted
		case script.Quarantined:
			v.Outcome, v.Err = Failed, quarantined(reply.TTL)
		case script.Unsettled:
			v.Outcome, v.Err = Failed, errUnsettled
		case script.Stranger:
			v.Outcome, v.Err = Failed, errStranger
		default:
			v.Outcome, v.Err = Failed, fmt.Errorf("unexpected status %q", reply.Status)
		}
	}
	return answer{vote: v, reply: reply, err: err}
}
