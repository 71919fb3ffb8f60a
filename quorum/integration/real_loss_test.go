package integration_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// slowClocks is a drift that leaves a busy machine a fifth of the TTL to notice the end of a lease. What is compared is
// when it did, and when the keys ran out.
const slowClocks = 0.2

// A holder that is cut off from all servers sees its lease end before the key can have expired on any of them. Each
// server tells after the cut at which moment its key expires, on the same machine's clock.
func TestRealHolderThatIsCutOffEndsBeforeItsKeys(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	proxies, urls := m.BehindProxies()
	c := m.ClientAt(quorum.Config{NodeTimeout: sitOut, DriftFactor: slowClocks}, urls)
	l := mustGet(t, c, "stock")
	ctx := l.Context(t.Context())
	m.eventually("on all servers", m.counts("stock", l.Holder(), "1"))
	m.renewed("stock")

	for _, p := range proxies {
		p.Cut.Store(true)
	}
	expiry := m.firstExpiry("stock") // a renewal that is under way still, and answered to nobody, only makes it later
	wantDone(t, l, quorum.ErrLost)
	ended := time.Now()
	wantIs(t, context.Cause(ctx), quorum.ErrLost)
	if !ended.Before(expiry) {
		t.Errorf("the end was seen at %v, when a key had expired at %v", ended, expiry)
	} else {
		t.Logf("the end was seen %v before the first key expired", expiry.Sub(ended))
	}
	wantIs(t, l.Release(t.Context()), quorum.ErrLost)

	next := mustGet(t, m.Client(quorum.Config{}), "stock")
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	mustRelease(t, next)
}

// With the default drift, what a lease believes lies before what the servers do, though by less than a busy machine
// needs to notice the end.
func TestRealLeaseIsBelievedForLessThanItsKeysLive(t *testing.T) {
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	for range 20 {
		l := mustGet(t, c, "stock", quorum.WithLeaseTime(realTTL))
		m.eventually("on all servers", m.counts("stock", l.Holder(), "1"))
		end := time.Now().Add(realTTL)
		for range 100 {
			// A pause between the two readings only ever makes the end look later than it is.
			if left := l.Remaining(); time.Now().Add(left).Before(end) {
				end = time.Now().Add(left)
			}
		}
		if expiry := m.firstExpiry("stock"); !end.Before(expiry) {
			t.Errorf("believed until %v, and a key expires at %v", end, expiry)
		}
		mustRelease(t, l)
		m.Clean(time.Second)
	}
}

// All servers stop. Nothing refuses a connection, and nothing answers.
func TestRealHolderOfStoppedServersLosesTheLease(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{NodeTimeout: sitOut, DriftFactor: slowClocks})
	l := mustGet(t, c, "stock")
	m.Pause(0, 1, 2, 3, 4)
	stopped := time.Now() // every request that was answered began before, and so every key may be gone a TTL later
	wantDone(t, l, quorum.ErrLost)
	if took := time.Since(stopped); took >= realTTL {
		t.Errorf("the end was seen %v after the servers stopped, with a TTL of %v", took, realTTL)
	}
	m.Resume(0, 1, 2, 3, 4)
	// The renewals in the servers' sockets restore nothing.
	next := mustGet(t, m.Client(quorum.Config{}), "stock")
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	mustRelease(t, next)
	m.Clean(patience)
}

// renewed waits until a key lives for longer on every server than it did.
func (m *machines) renewed(name string) {
	m.T.Helper()
	before := m.everywhere(name)
	m.eventually("it is renewed", func() bool {
		now := m.expiries(name)
		for i := range now {
			if !now[i].After(before[i]) {
				return false
			}
		}
		return now != nil
	})
}

// everywhere waits until a key is on every server, and tells when it expires on each. It has been had when a quorum has it, and the
// others may be late.
func (m *machines) everywhere(name string) (expiries []time.Time) {
	m.T.Helper()
	m.eventually("it is everywhere", func() bool {
		expiries = m.expiries(name)
		return expiries != nil
	})
	return expiries
}

// firstExpiry is when the key expires on the first server that lets it; zero if it is gone from one.
func (m *machines) firstExpiry(name string) time.Time {
	m.T.Helper()
	all := m.expiries(name)
	if all == nil {
		return time.Time{}
	}
	return slices.MinFunc(all, time.Time.Compare)
}

// expiries are when the key expires on each server; nil if it is gone from one: it expired at some time before now.
func (m *machines) expiries(name string) (all []time.Time) {
	m.T.Helper()
	for _, s := range m.Servers {
		at, err := s.Client().PExpireTime(m.T.Context(), name).Result()
		m.Must(err)
		if at < 0 {
			return nil
		}
		all = append(all, time.UnixMilli(at.Milliseconds()))
	}
	return all
}
