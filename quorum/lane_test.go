package quorum_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// What counts is when the node's answer came: it may have voted for somebody else between the question and that.
func TestVoteInQuarantineIsJudgedByWhenItWasAnswered(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		synctest.Wait()
		for _, tt := range []struct {
			begun, answered time.Duration
			want            bool
		}{
			{-2 * time.Second, -time.Second, true},
			{-2 * time.Second, -time.Microsecond, true},
			{-time.Second, 0, false},
			{-time.Microsecond, time.Second, false},
			{time.Second, 2 * time.Second, false},
		} {
			if got := quorum.CountsInQuarantine(l, 1, tt.begun, tt.answered); got != tt.want {
				t.Errorf("begun %v, answered %v after the end of the last vote: counts %v", tt.begun, tt.answered, got)
			}
		}
		mustRelease(t, l)
	})
}

// A script that an error cut off midway may have left the lock there, so the attempt is rolled back on that node as well.
func TestScriptThatWasCutOffMidwayIsRolledBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		cause := errors.New("ERR something, script: f, on @user_script:3")
		for _, tt := range []struct {
			err  *node.Error
			want bool
		}{
			{&node.Error{Sent: true, Refused: true, Err: cause}, true},
			{&node.Error{Sent: true, Err: node.ErrTimeout}, true},
			{&node.Error{Refused: true, Err: cause}, false}, // before the script began
			{&node.Error{Err: cause}, false},
		} {
			if got := quorum.MayBePresentAfter(c, tt.err); got != tt.want {
				t.Errorf("sent %v, refused %v: may be there %v", tt.err.Sent, tt.err.Refused, got)
			}
		}
	})
}
