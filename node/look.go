package node

import (
	"context"
	"errors"

	"github.com/redquorum/redquorum/script"
)

// Look returns who has a lock on this node, "" if nobody has, and how many clients listen for its release. It decides
// nothing and changes nothing, so it needs no script and no last moment, and a node answers that may have forgotten. A key
// that is no lock is an error. Where PUBSUB is not permitted, nobody listens.
func (n *Node) Look(ctx context.Context, name string) (holder string, listeners int, err error) {
	// Both leave together. Of an application's hash, which may be too large for any reply, no more is read than tells it from a
	// lock: hence HRANDFIELD, which returns all fields of a small hash, and no values.
	held, heard := n.plain(ctx, "HRANDFIELD", script.LockKey(name), mostFields), n.plain(ctx, "PUBSUB", "NUMSUB", script.Channel(name))
	n.stream.put(held, heard)
	first, second := n.await(ctx, held), n.await(ctx, heard)
	if first.err != nil {
		return "", 0, first.err
	}
	if len(second.values) == 2 { // the channel, and how many
		listeners = int(second.values[1].n)
	}
	if len(first.values) > 64 {
		return "", 0, &Error{Node: n.name, Refused: true, Err: errNoLock}
	}
	for _, field := range first.values {
		if holder == "" || field.text < holder {
			holder = field.text
		}
	}
	return holder, listeners, nil
}

// mostFields is one more than a lock has at most: see acquire.lua.
const mostFields = "65"

// errNoLock is a key that is no lock.
var errNoLock = errors.New("the key is no lock")

// plain is a command that is no script, and takes nothing from the node.
func (n *Node) plain(ctx context.Context, words ...string) *Call {
	c := &Call{words: words, told: make(chan outcome, 1)}
	c.Deadline, _ = ctx.Deadline()
	return c
}
