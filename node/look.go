package node

import (
	"context"

	"github.com/redquorum/redquorum/script"
)

// Look returns who has a lock on this node, "" if nobody has, and how many clients listen for its release. It decides
// nothing and changes nothing, so it needs no script and no last moment, and a node answers that may have forgotten. A key
// of another type is an error. HGETALL is what the scripts use, too; where PUBSUB is not permitted, nobody listens.
func (n *Node) Look(ctx context.Context, name string) (holder string, listeners int, err error) {
	// Both leave together.
	held, heard := n.plain(ctx, "HGETALL", script.LockKey(name)), n.plain(ctx, "PUBSUB", "NUMSUB", script.Channel(name))
	n.stream.put(held, heard)
	first, second := n.await(ctx, held), n.await(ctx, heard)
	if first.err != nil {
		return "", 0, first.err
	}
	for i := 0; i < len(first.values); i += 2 { // fields and values
		if field := first.values[i].text; holder == "" || field < holder {
			holder = field
		}
	}
	if len(second.values) == 2 { // the channel, and how many
		listeners = int(second.values[1].n)
	}
	return holder, listeners, nil
}

// plain is a command that is no script, and takes nothing from the node.
func (n *Node) plain(ctx context.Context, words ...string) *Call {
	c := &Call{words: words, told: make(chan outcome, 1)}
	c.Deadline, _ = ctx.Deadline()
	return c
}
