package node

import (
	"context"
	"strconv"

	"github.com/redquorum/redquorum/script"
)

// A Sight is what a look at a lock on one node shows.
type Sight struct {
	Holder    string // who has it; "" if nobody has
	Fence     int64  // the highest token that the node has granted, if it was asked for; 0 if there is none
	Listeners int    // how many clients listen for its release
	Attending int    // how many listen for the end of a turn
}

// Look looks at a lock on this node. It decides nothing and changes nothing, so it needs no script and no last moment, and a
// node answers that may have forgotten. A key of another type is an error. HGETALL and GET are what the scripts use, too; where
// PUBSUB is not permitted, nobody listens.
func (n *Node) Look(ctx context.Context, name string, fence bool) (s Sight, err error) {
	calls := []*Call{
		n.plain(ctx, "HGETALL", script.LockKey(name)),
		n.plain(ctx, "PUBSUB", "NUMSUB", script.Channel(name), script.TurnChannel(name)),
		n.plain(ctx, "GET", script.FenceKey(name)),
	}
	if !fence {
		calls = calls[:2]
	}
	n.stream.put(calls...) // together
	var told [3]outcome
	for i, c := range calls {
		told[i] = n.await(ctx, c)
	}
	first, second, third := told[0], told[1], told[2]
	if first.err != nil {
		return s, first.err
	}
	for i := 0; i < len(first.values); i += 2 { // fields and values
		if field := first.values[i].text; s.Holder == "" || field < s.Holder {
			s.Holder = field
		}
	}
	if len(second.values) == 4 { // each channel, and how many
		s.Listeners, s.Attending = int(second.values[1].n), int(second.values[3].n)
	}
	if len(third.values) == 1 {
		s.Fence, _ = strconv.ParseInt(third.values[0].text, 10, 64)
	}
	return s, nil
}

// Publish publishes a message, and returns how many have heard it.
func (n *Node) Publish(ctx context.Context, channel, message string) (heard int, err error) {
	c := n.plain(ctx, "PUBLISH", channel, message)
	n.stream.put(c)
	told := n.await(ctx, c)
	if len(told.values) == 1 {
		heard = int(told.values[0].n)
	}
	return heard, told.err
}

// plain is a command that is no script, and takes nothing from the node.
func (n *Node) plain(ctx context.Context, words ...string) *Call {
	c := &Call{words: words, told: make(chan outcome, 1)}
	c.Deadline, _ = ctx.Deadline()
	return c
}
