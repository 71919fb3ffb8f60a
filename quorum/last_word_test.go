package quorum

import (
	"errors"
	"testing"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// A farewell that Close cuts short is not called done by an answer that is out of date.
func TestLastWordOfAFarewell(t *testing.T) {
	gone := judge("a", script.Reply{Status: script.Absent}, nil, 0)
	refused := judge("a", script.Reply{}, &node.Error{Node: "a", Err: errors.New("NOPERM")}, 0)
	for _, tt := range []struct {
		what          string
		busy, present bool
		answer        answer
		want          Outcome
	}{
		{"nothing is left", false, false, gone, gone.vote.Outcome},
		{"a request is under way that may put it back", true, false, gone, Unknown},
		{"such a request has done so since", false, true, gone, Unknown},
		{"an error stays what it is", true, false, refused, Failed},
	} {
		t.Run(tt.what, func(t *testing.T) {
			l := &lane{node: &voter{name: "a"}, busy: tt.busy, present: tt.present}
			if got := l.lastWord(tt.answer).vote; got.Outcome != tt.want || got.Node != "a" {
				t.Errorf("told %v", got)
			}
		})
	}
}
