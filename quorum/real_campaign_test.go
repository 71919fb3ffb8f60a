package quorum_test

import (
	"context"
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// Three clients stand; servers, which write everything down, are killed and restarted, all of them at once between. Whoever
// leads is seen to by the office that they share: no two believe in their terms at once, and tokens grow.
func TestRealNeverTwoLeadersWhileServersFail(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5, always...)
	m.found()
	m.Timeout = realTimeout
	o := office{t: t}
	var campaigns []*campaign
	for range 3 {
		campaigns = append(campaigns, campaigning(t, m.Client(quorum.Config{}), o.untilLost))
	}
	leads := func() bool { return o.sitting() != nil }
	whole := func() bool {
		term := o.sitting()
		return term != nil && m.counts("chair", term.Holder(), "1")()
	}
	for i := range 3 {
		m.eventually("a leader, on all nodes", whole)
		m.Kill(i, i+1) // no more than two of five: whoever leads goes on
		term := o.sitting()
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
		term = o.sitting()
		m.Kill(0, 1, 2, 3, 4)
		wantDone(t, term, quorum.ErrLost)
		if o.sitting() != nil {
			t.Fatal("somebody leads without servers")
		}
		m.Restart(0, 1, 2, 3, 4)
	}
	m.eventually("a leader", leads)
	if o.terms() < 4 {
		t.Errorf("%d terms: nothing was shown", o.terms())
	}
	for _, k := range campaigns {
		wantIs(t, k.end(nil), context.Canceled)
	}
	m.Clean(2 * realTTL)
}
