package integration_test

import (
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// Every counter stands ahead of the clock, so the clock cannot bridge the loss of one, and one server after another
// loses its own: tokens grow all the same, because every server is told the last token before the next one forgets.
func TestRealTokensGrowThroughTheLossOfCounters(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	ahead := time.Now().Add(time.Hour).UnixMicro()
	for i, s := range m.Servers {
		m.Must(s.Client().Set(t.Context(), script.FenceKey("stock"), ahead+int64(1000*i), time.Hour).Err())
	}
	last := ahead
	// A lease that is released, and one that is held when the server forgets.
	grant := func() *quorum.Lease {
		t.Helper()
		l := mustGet(t, c, "stock")
		if l.Token() <= last {
			t.Fatalf("token %d after %d", l.Token(), last)
		}
		last = l.Token()
		return l
	}
	told := func() bool {
		for i := range m.Servers {
			if m.fence(i, "stock") < last {
				return false
			}
		}
		return true
	}
	for i, s := range m.Servers {
		mustRelease(t, grant())
		m.eventually("every server was told the token", told)
		m.Must(s.Client().FlushAll(t.Context()).Err())

		l := grant()
		m.eventually("every server was told the token", told)
		m.Restart(i)
		m.eventually("the token is restored with the lease", told)
		mustRelease(t, l)
	}
	m.Clean(time.Second)
}
