package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// ahead lets clocks be ahead of ours, each known to within a millisecond.
func ahead(all []facts, by ...time.Duration) []facts {
	for i, d := range by {
		all[i].least, all[i].most = d-time.Millisecond, d+time.Millisecond
	}
	return all
}

func TestClocks(t *testing.T) {
	const s = time.Second
	r := judge(defaults(), ahead(healthy(3), -400*time.Millisecond, 0, 400*time.Millisecond))
	wantNothing(t, r)
	if f := r.of("clocks")[0]; !strings.Contains(f.Found, "802ms") {
		t.Errorf("got %+v", f)
	}
	wantOne(t, judge(defaults(), ahead(healthy(3), 0, 2*s, 0)), Warning, "clocks", "10.0.0.2:6379", "2s ahead", "NTP")
	wantOne(t, judge(defaults(), ahead(healthy(3), 0, 0, -90*s/60)), Warning, "clocks", "10.0.0.3:6379", "1.5s behind")
	// It is ours where all others agree.
	wantOne(t, judge(defaults(), ahead(healthy(3), 5*s, 5*s, 5*s)), Warning, "clocks", "", "this machine's", "5s behind")
	wantOne(t, judge(defaults(), ahead(healthy(3), -5*s, -5*s, -5*s)), Warning, "clocks", "", "this machine's", "5s ahead")
	// What is not known for certain is not said.
	all := healthy(3)
	all[1].least, all[1].most = -time.Second, 3*time.Second
	wantNothing(t, judge(defaults(), all))
	// Nodes that do not answer have no clock.
	all = ahead(healthy(3), 0, 2*s, 0)
	all[1] = facts{node: all[1].node, err: quorum.ErrClosed}
	if f := judge(defaults(), all).of("clocks"); len(f) != 1 || f[0].Severity != OK {
		t.Errorf("got %+v", f)
	}
}

// Where they are further apart than a quarantine bridges, tokens may go back; how long that is the longest TTL says.
func TestClocksThatAQuarantineDoesNotBridge(t *testing.T) {
	for _, c := range []struct {
		apart, ttl, longest time.Duration
		problem             bool
	}{
		{27 * time.Second, 30 * time.Second, 30 * time.Second, false},
		{29 * time.Second, 30 * time.Second, 30 * time.Second, true},
		{29 * time.Second, 30 * time.Second, 60 * time.Second, false},
		{29 * time.Second, 60 * time.Second, 30 * time.Second, false},
		{3 * time.Second, time.Second, time.Second, true},
		{900 * time.Millisecond, time.Second, time.Second, false},
	} {
		all := ahead(healthy(3), 0, c.apart, 0)
		for i := range all {
			all[i].record.TTL = c.longest
		}
		r := judge(quorum.Config{TTL: c.ttl}.WithDefaults(), all)
		if got := r.Worst() == Problem; got != c.problem {
			t.Errorf("%+v: %+v", c, r.of("clocks"))
		}
	}
}
