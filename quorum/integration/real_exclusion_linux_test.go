package integration_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Several processes contend for one lock while servers hang and die, one at a time, and the dead come back empty at once.
// The next one may hang or die when that one votes again: fewer than a quorum forget within a guard time.
//
// (On Linux only, because only there do the clocks of several processes compare.)
func TestRealNeverTwoHoldersWhileServersFail(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	var told ledger
	var crew []*worker
	for range 4 {
		w := m.startWorker("contend")
		told.follow(w)
		crew = append(crew, w)
	}
	// Every fault sees the work go on: with one server faulty there is a quorum.
	goesOn := func(what string) {
		t.Helper()
		n := told.len()
		m.eventually("work goes on: "+what, func() bool { return told.len() > n+20 })
	}
	goesOn("from the start")
	for i := range m.Servers {
		m.Pause(i)
		goesOn("one server hangs")
		m.Resume(i)
		goesOn("it is back")
		m.Kill(i)
		goesOn("one server is dead")
		m.Restart(i)
		goesOn("it is back, empty")
		m.eventually("it votes again", func() bool { return m.settled(i) && !m.inQuarantine(i) })
	}
	m.eventually("some thousand leases", func() bool { return told.len() >= 2000 })

	for _, w := range crew {
		_ = w.in.Close()
	}
	told.group.Wait() // every process has made its last release
	m.Clean(time.Second)
	for _, w := range crew {
		w.wait()
	}
	told.check(t)
}

// check looks for two holders at once, and for tokens that do not grow with the order of the grants.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	slices.SortFunc(l.grants, func(a, b grant) int { return cmp.Compare(a.From, b.From) })
	lost := 0
	by := map[string]int{}
	var last grant // the one before; its To is the latest so far
	for _, g := range l.grants {
		client, _, _ := strings.Cut(g.Holder, ":")
		by[client]++
		if g.Lost {
			lost++
		}
		if g.From <= last.To {
			t.Errorf("two holders at once: %+v and %+v", last, g)
		}
		if g.Token <= last.Token {
			t.Errorf("the token does not grow: %+v, then %+v", last, g)
		}
		g.To = max(g.To, last.To)
		last = g
	}
	t.Logf("%d leases, %d of them lost; by process %v", len(l.grants), lost, by)
}
