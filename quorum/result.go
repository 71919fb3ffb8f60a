package quorum

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/redquorum/redquorum/script"
)

// failure makes the error of an operation from the votes that are in.
func (c *Coordinator) failure(op, name string, b *ballot, classes ...error) *QuorumError {
	return c.quorumError(op, name, b.votes(), classes...)
}

// noAnswer makes the error of an operation that ended before any node was asked.
func (c *Coordinator) noAnswer(op, name string, classes ...error) error {
	votes := make([]Vote, len(c.nodes))
	for i, n := range c.nodes {
		votes[i].Node = n.name
	}
	return c.quorumError(op, name, votes, classes...)
}

func (c *Coordinator) quorumError(op, name string, votes []Vote, classes ...error) *QuorumError {
	e := &QuorumError{Op: op, Name: name, Need: c.need, Votes: votes, classes: classes}
	for _, v := range votes {
		if v.Outcome == Granted {
			e.Got++
		}
	}
	e.RetryAfter = retryAfter(votes, c.need)
	return e
}

// classify tells what votes without a quorum of grants mean: ErrNoQuorum if more than N - quorum nodes failed or have not
// answered, since those that did cannot tell whether the lock is held; ErrNotAcquired otherwise.
func (c *Coordinator) classify(votes []Vote) error {
	silent := 0
	for _, v := range votes {
		if v.Outcome == Failed || v.Outcome == Unknown {
			silent++
		}
	}
	if silent > len(votes)-c.need {
		return ErrNoQuorum
	}
	return ErrNotAcquired
}

// retryAfter is when enough of the TTLs seen have run out for a quorum: the need-th smallest, where a node that granted
// is free now and one that did not answer is of no help. 0 if there is no such moment, or it is now.
func retryAfter(votes []Vote, need int) time.Duration {
	var free []time.Duration
	for _, v := range votes {
		switch {
		case v.Outcome == Granted:
			free = append(free, 0)
		case v.Outcome == Held && v.TTL != script.NoExpiry:
			free = append(free, max(v.TTL, v.TTL+time.Millisecond)) // Redis cuts a TTL off to whole milliseconds
		case errors.Is(v.Err, ErrQuarantined):
			free = append(free, v.TTL)
		}
	}
	if len(free) < need {
		return 0
	}
	slices.SortFunc(free, cmp.Compare)
	return free[need-1]
}
