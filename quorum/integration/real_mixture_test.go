package integration_test

import (
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// The power fails, and all but one have forgotten everything. That one shows that the cluster is not new.
func TestRealClusterWithOneNodeThatWritesEverythingIsNotNew(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	m.Must(m.Servers[0].RestartWith(always...))
	c := m.found()
	proxies, urls := m.BehindProxies()
	l := mustGet(t, m.ClientAt(quorum.Config{}, urls), "stock", quorum.WithLeaseTime(3*realTTL))
	m.eventually("all have it", m.counts("stock", l.Holder(), "1"))
	for _, p := range proxies {
		p.Cut.Store(true) // it heals nothing
	}
	m.Kill(0, 1, 2)
	m.Restart(0, 1, 2)
	if len(m.Hash(0, "stock")) == 0 || len(m.Hash(1, "stock")) != 0 || len(m.Hash(2, "stock")) != 0 {
		t.Fatal("the wrong servers remember, and the test shows nothing")
	}
	m.noSecondHolder(c, l)
	if first, second := m.Record(0)["until"], m.Record(1)["until"]; first != "0" || second == "0" {
		t.Errorf("quarantines until %q and %q, want none of the one and one of the other", first, second)
	}
	m.Kill(0) // the two others vote, in the end
	mustRelease(t, mustGet(t, c, "stock"))
}
