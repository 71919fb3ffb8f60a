package otelquorum

import (
	"context"
	"errors"
	"io"
	"net"

	"go.opentelemetry.io/otel/attribute"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// The attributes. Each has a few values, except for those of spans alone.
const (
	operationKey = attribute.Key("redquorum.operation")
	outcomeKey   = attribute.Key("redquorum.outcome")
	wayKey       = attribute.Key("redquorum.way")
	lossKey      = attribute.Key("redquorum.loss")
	nodeKey      = attribute.Key("redquorum.node")
	conditionKey = attribute.Key("redquorum.condition")
	lockKey      = attribute.Key("redquorum.lock")
	errorTypeKey = attribute.Key("error.type")

	// Of spans and their events.
	nameKey    = attribute.Key("redquorum.name")
	holderKey  = attribute.Key("redquorum.holder")
	tokenKey   = attribute.Key("redquorum.token")
	placeKey   = attribute.Key("redquorum.wait.place")
	waitedKey  = attribute.Key("redquorum.wait.duration")
	elapsedKey = attribute.Key("redquorum.elapsed")
	leftKey    = attribute.Key("redquorum.left")
	votesKey   = attribute.Key("redquorum.votes")
)

// other is the error type of what has no name here, as OpenTelemetry has it.
const other = "_OTHER"

// outcome names how a call ended: with its class of error, or with success's name.
func outcome(err error, success string) string {
	switch {
	case err == nil:
		return success
	// Whose context ended does not know whether others have the lock, so this comes first.
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline-exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, quorum.ErrNotAcquired):
		return "not-acquired"
	case errors.Is(err, quorum.ErrSameServer):
		return "same-server"
	case errors.Is(err, quorum.ErrNoQuorum):
		return "no-quorum"
	case errors.Is(err, quorum.ErrLost):
		return "lost"
	case errors.Is(err, quorum.ErrReleased):
		return "already-released"
	case errors.Is(err, quorum.ErrClosed):
		return "closed"
	}
	return "error"
}

// failed tells whether a call that ended so is to be shown as one that failed: not if others had the lock, not if the caller
// did not want it any more, and not if the lock had been given back before.
func failed(outcome string) bool {
	return outcome != "not-acquired" && outcome != "canceled" && outcome != "already-released"
}

// errorType names what became of a request to a node.
func errorType(err error) string {
	var network net.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, quorum.ErrQuarantined):
		return "quarantined"
	case errors.Is(err, quorum.ErrClock):
		return "clock-off"
	case errors.Is(err, quorum.ErrSameServer):
		return "same-server"
	case errors.Is(err, node.ErrReplica):
		return "replica"
	case errors.Is(err, node.ErrUnguarded):
		return "unguarded"
	case errors.Is(err, node.ErrTimeout):
		return "timeout"
	case node.Permanent(err):
		return "denied"
	case node.Refused(err):
		return "refused"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return "unreachable"
	}
	return other
}

// votes writes down what the nodes said, if an error carries it.
func votes(err error) []string {
	var q *quorum.QuorumError
	if !errors.As(err, &q) {
		return nil
	}
	var all []string
	for _, v := range q.Votes {
		all = append(all, v.String())
	}
	return all
}
