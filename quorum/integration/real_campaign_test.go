package integration_test

import (
	"context"
	"testing"

	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/quorum"
)

// Three clients stand; servers, which write everything down, are killed and restarted, all of them at once between. Whoever
// leads is seen to by the office that they share: no two believe in their terms at once, and tokens grow.
func TestRealNeverTwoLeadersWhileServersFail(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5, always...)
	m.found()
	m.Timeout = realTimeout
	o := quorumtest.Office{T: t}
	var campaigns []*quorumtest.Campaign
	for range 3 {
		campaigns = append(campaigns, quorumtest.Campaigning(t, m.Client(quorum.Config{}), o.UntilLost))
	}
	leads := func() bool { return o.Sitting() != nil }
	whole := func() bool {
		term := o.Sitting()
		return term != nil && m.counts("chair", term.Holder(), "1")()
	}
	for i := range 3 {
		m.eventually("a leader, on all nodes", whole)
		m.Kill(i, i+1) // no more than two of five: whoever leads goes on
		term := o.Sitting()
		for before := term.Remaining(); ; { // until it was renewed without them
			if now := term.Remaining(); term.Err() != nil {
				t.Fatalf("a leader lost its term while three of five servers ran: %v", term.Err())
			} else if now > before {
				break
			} else {
				before = now
			}
		}
		m.Restart(i, i+1)

		m.eventually("a leader", leads)
		term = o.Sitting()
		m.Kill(0, 1, 2, 3, 4)
		wantDone(t, term, quorum.ErrLost)
		if o.Sitting() != nil {
			t.Fatal("somebody leads without servers")
		}
		m.Restart(0, 1, 2, 3, 4)
	}
	m.eventually("a leader", leads)
	if o.Terms() < 4 {
		t.Errorf("%d terms: nothing was shown", o.Terms())
	}
	for _, k := range campaigns {
		wantIs(t, k.End(nil), context.Canceled)
	}
	m.Clean(2 * realTTL)
}
