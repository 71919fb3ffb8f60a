package quorum

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrNotAcquired is an acquire that failed because others hold the lock. [QuorumError.RetryAfter] says when to
	// come back.
	ErrNotAcquired = errors.New("redquorum: not acquired, held by others")
	// ErrNoQuorum is an operation that a quorum of nodes could not decide: more than N - quorum nodes failed or did
	// not answer, or they granted too late to be of use.
	ErrNoQuorum = errors.New("redquorum: no quorum of nodes")
	// ErrLost is a lease that has ended although nobody released it: it could not be renewed in time, it was
	// force-released, or it reached its lease time or MaxHold. Whoever worked under it must stop.
	ErrLost = errors.New("redquorum: lease lost")
	// ErrNotFreed is a force-release that stopped the holder's renewals but could not delete the keys, because too few
	// nodes answered. [QuorumError.RetryAfter] says when the keys have expired.
	ErrNotFreed = errors.New("redquorum: holder revoked, lock not free before its TTL ends")
	// ErrReleased is a lease that was released, or whose coordinator was closed.
	ErrReleased = errors.New("redquorum: lease released")
	// ErrClosed is a coordinator after Close.
	ErrClosed = errors.New("redquorum: coordinator closed")
	// ErrQuarantined is the vote of a node that was restarted and may have forgotten locks. It counts again when
	// everything that it may have forgotten has expired: see Config.NoRestartGuard.
	ErrQuarantined = errors.New("redquorum: the node was restarted and does not vote yet")
	// ErrClock is the vote of a node whose clock ran off from ours by more than the drift (see Config.DriftFactor): it
	// was set, or one of the two runs too fast or too slow. It counts again when every lease that this may concern is
	// over. If it is the vote of most nodes, this machine's clock is the likelier culprit.
	ErrClock = errors.New("redquorum: the node's clock ran off")
	// ErrSameServer is two addresses that lead to one server. There, a quorum of addresses is no quorum of machines,
	// and every acquire fails until the configuration is mended.
	ErrSameServer = errors.New("redquorum: two of the addresses are one server")
)

// QuorumError is an operation that did not get the votes it needed, with what each node said.
//
// It unwraps to its class (ErrNotAcquired, ErrNoQuorum, or, when the caller's context ended, that context's error and
// cause) and to the errors of the nodes. When the context ended it never matches ErrNotAcquired: nobody knows whether
// the lock could have been had. A node that did not answer in time is node.ErrTimeout, which is no context's error.
type QuorumError struct {
	// Op is what was tried: "acquire", "try-acquire", "renew", "release", "force-release", "inspect", "names",
	// "ping".
	Op string
	// Name is the lock's.
	Name string
	// Need is the quorum, Got the number of votes that were granted.
	Need, Got int
	// RetryAfter is when enough of the TTLs seen will have run out for a quorum; 0 if that cannot be told.
	RetryAfter time.Duration
	// Votes are the nodes' answers, in the order of the nodes.
	Votes []Vote

	classes []error
}

// Error names the class, the count and every node's word.
func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redquorum: %s %q: ", e.Op, e.Name)
	for i, class := range e.classes {
		if i > 0 {
			b.WriteString(": ")
		}
		b.WriteString(strings.TrimPrefix(class.Error(), "redquorum: "))
	}
	fmt.Fprintf(&b, " (%d of %d votes, need %d", e.Got, len(e.Votes), e.Need)
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, ", retry after %v", e.RetryAfter.Round(time.Millisecond))
	}
	b.WriteString(")")
	for i, v := range e.Votes {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(v.String())
	}
	return b.String()
}

// Unwrap returns the class first, then the nodes' errors.
func (e *QuorumError) Unwrap() []error {
	all := append([]error(nil), e.classes...)
	for _, v := range e.Votes {
		if v.Err != nil {
			all = append(all, v.Err)
		}
	}
	return all
}
