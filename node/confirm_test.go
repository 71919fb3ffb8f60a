package node

import "testing"

// spoken is what a listener that speaks for itself was told.
type spoken chan Event

// comes adds a listener to a channel that is served already, over a connection that is looked at step by step.
func comes(ls *listeners, channel string) (spoken, *listener) {
	told := make(spoken, 8)
	l := &listener{channel: channel, hear: func(e Event) { told <- e }}
	ls.running = true
	ls.add(l, 0)
	_ = ls.group.Wait() // who is told at once is told by now
	return told, l
}

// The server confirms a subscription at a moment when whoever wanted it has left, and the connection has not. It will not
// confirm it again.
func TestConfirmationThatFindsNobodyIsForWhoeverComesNext(t *testing.T) {
	var ls listeners
	_, first := comes(&ls, "a")
	ls.news()
	ls.remove(first)
	ls.confirmation("a")
	next, _ := comes(&ls, "a")
	if len(next) != 1 {
		t.Error("nobody tells it that it is subscribed")
	}
	if more, less := ls.news(); len(more)+len(less) > 0 {
		t.Errorf("subscribes to %q and leaves %q, want neither", more, less)
	}
}

// A channel is left and taken up again before the server has confirmed it. Messages are sure to arrive from the second
// confirmation on.
func TestConfirmationIsThatOfTheLastSubscription(t *testing.T) {
	var ls listeners
	_, first := comes(&ls, "a")
	ls.news()
	ls.remove(first)
	ls.news()
	next, _ := comes(&ls, "a")
	ls.news()
	if ls.confirmation("a"); len(next) != 0 {
		t.Error("the first confirmation counts, behind which the server leaves the channel")
	}
	if ls.confirmation("a"); len(next) != 1 {
		t.Error("the second one does not count")
	}
}
