package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrTimeout is a node that did not answer within the time it had. It never matches a context's error: the caller's
// time is not up, the node's is.
var ErrTimeout = errors.New("node: no answer in time")

// ErrClosed is returned by a Node after Close.
var ErrClosed = errors.New("node: closed")

// Error is a request that failed on one node.
type Error struct {
	// Node is the node's name, see [Node.Name].
	Node string
	// Sent tells whether the request may have reached the node. Only then can it have taken effect.
	Sent bool
	// Refused tells that the node answered, with an error. A script that was cut off in the middle (Sent) may have
	// done a part of its work.
	Refused bool
	// Last is the last moment, in microseconds on the node's clock, at which a request that was sent may still take
	// effect; 0 if it has none.
	Last int64
	// Err is ErrTimeout, what the network said, or what Redis answered.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Node, e.Err) }

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// Sent tells whether a request that failed with err may have taken effect.
func Sent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Sent
}

// Refused tells whether the node answered, with an error.
func Refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Refused
}

// wrap tells what an error means for a request that got so far: see Error.
func (n *Node) wrap(err error, w way) error {
	e := &Error{Node: n.name, Sent: w.sent, Err: err}
	var answer redis.Error
	var handshake *Error
	switch {
	case errors.As(err, &handshake): // the check of a new connection
		e.Refused, e.Err = handshake.Refused, handshake.Err
	case errors.Is(err, redis.ErrClosed):
		e.Err = ErrClosed
	case errors.Is(err, redis.Nil):
		// go-redis' error for a reply of nil, which no script gives: odd, but no refusal.
	case errors.As(err, &answer):
		// An answer is final: either the request was refused as a whole, or its script was cut off.
		e.Refused = true
		e.Sent = w.sent && cutOff(answer)
		if w.req != nil {
			e.Err = complete(err, answer, w.req)
		}
	case timedOut(err):
		e.Err = ErrTimeout
	}
	if w.sent {
		e.Last = w.last
	}
	return e
}

// timedOut tells whether an error is that time was up.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// cutOff tells whether a script ran into an error in the middle: Redis names the script and the line.
func cutOff(answer redis.Error) bool {
	text := answer.Error()
	return strings.Contains(text, "user_script") || strings.Contains(text, "script:")
}
