package main

import (
	"errors"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/demo"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// Exit statuses, as the help has them.
const (
	exact     = 0
	notExact  = 1 // the demo
	unhealthy = 1 // doctor: there are problems, or with --strict warnings
	failed    = 2 // whatever was asked for was not done; also no quorum, for those that only look

	// Those of run, which must not be taken for the command's own.
	notAcquired = 120
	lost        = 121
	noQuorum    = 122
	notRun      = 123
)

// exit is an error with an exit status. Without a message the status is all there is to say.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// statusOf is the exit status of an error.
func statusOf(err error) int {
	var e *exit
	switch {
	case err == nil:
		return exact
	case errors.As(err, &e):
		return e.status
	case errors.Is(err, demo.ErrNotExact):
		return notExact
	}
	return failed
}

// refused tells whether so many nodes refuse what waiting does not cure, credentials say, that the others are no quorum.
func refused(err error) bool {
	var q *quorum.QuorumError
	if !errors.As(err, &q) {
		return false
	}
	n := 0
	for _, v := range q.Votes {
		if node.Permanent(v.Err) {
			n++
		}
	}
	return n > len(q.Votes)-q.Need
}

// lockStatus is the exit status of run for an error about the lock.
func lockStatus(err error) int {
	switch {
	case errors.Is(err, quorum.ErrNotAcquired):
		return notAcquired
	case errors.Is(err, quorum.ErrNoQuorum) && !refused(err):
		return noQuorum
	case errors.Is(err, quorum.ErrLost):
		return lost
	}
	return notRun
}
