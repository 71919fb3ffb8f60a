package script_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

func TestRenewalTellsWhatWasLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		for _, left := range []time.Duration{9 * time.Second, time.Hour, 0} {
			lock(t, c, us, 1, left)
			want := left
			if left == 0 {
				want = script.NoExpiry
			}
			req := aRenewal
			req.Count = 2
			got := run(t, c, req)
			if got.Status != script.Renewed || !about(got.TTL, want) || got.Holder != us || got.Count != 2 {
				t.Errorf("got %+v, want renewed with %v left", got, want)
			}
			wantHash(t, c, map[string]string{us: "2"})
		}
	})
}

func TestRenewalRestoresALostLock(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		req := aRenewal
		req.Count = 3
		got := run(t, c, req)
		if got.Status != script.Restored || got.TTL != 0 || got.Fence != noon || got.Count != 3 {
			t.Errorf("got %+v, want restored", got)
		}
		if stored := fence(t, c); stored != strconv.FormatInt(noon, 10) {
			t.Errorf("the fence is %q, want the token", stored)
		}
		wantHash(t, c, map[string]string{us: "3"})
		wantTTL(t, c, name, ttl)
		unchanged(t, c, func() { wantStatus(t, run(t, c, req), script.Renewed) }) // sent twice
	})
}

func TestRenewalIsRefusedToOthers(t *testing.T) { refusesOthers(t, aRenewal) }
func TestRaiseIsRefusedToOthers(t *testing.T)   { refusesOthers(t, aRaise) }

func TestRaiseOfAnAbsentLock(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		must(t, c.Set(t.Context(), script.FenceKey(name), 5, day))
		unchanged(t, c, func() { wantStatus(t, run(t, c, aRaise), script.Absent) })
	})
}

func TestRaiseChangesOnlyTheFence(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		lock(t, c, us, 4, time.Minute)
		for range 2 { // sent twice
			got := run(t, c, aRaise)
			if got.Status != script.Raised || got.Fence != noon || got.Count != 4 || !about(got.TTL, time.Minute) {
				t.Errorf("got %+v, want raised to %d", got, noon)
			}
		}
		wantHash(t, c, map[string]string{us: "4"})
		wantTTL(t, c, name, time.Minute)
	})
}

// A fence is never lowered, whichever of two requests comes last.
func TestFenceNeverFalls(t *testing.T) {
	const high = noon + 1_000_000
	for _, req := range []script.Request{anAcquire, aRenewal, aRaise, aRelease, aRollback, aRevoke, aForce, aLook} {
		t.Run(req.Script().Name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				for _, held := range []bool{true, false} {
					must(t, c.FlushAll(t.Context()))
					must(t, c.Set(t.Context(), script.FenceKey(name), high, time.Minute))
					if held {
						lock(t, c, us, 1, ttl)
					}
					got := runAt(t, c, noon, req, 0)
					stored, err := strconv.ParseInt(fence(t, c), 10, 64)
					if err != nil || stored < high {
						t.Errorf("held %v, %s: the fence fell from %d to %q", held, got.Status, high, fence(t, c))
					}
				}
			})
		})
	}
}

func TestRevokedHolderIsNotRestored(t *testing.T) {
	for _, tt := range []struct {
		title, list string
		refused     bool
	}{
		{"alone", us, true},
		{"first in the list", us + " " + them, true},
		{"second in the list", them + " " + us, true},
		{"in the middle", them + " " + us + " x:1", true},
		{"not in the list", them, false},
		{"a prefix of a revoked one", us + "0", false},
		{"a suffix of a revoked one", "f" + us, false},
		{"in the middle of a revoked one", "f" + us + "0", false},
		{"a revoked one is a prefix of it", us[:len(us)-1], false},
		{"with a revoked one made of patterns", ".* %w+ .-", false},
	} {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				must(t, c.Set(t.Context(), script.RevokedKey(name), tt.list, time.Minute))
				for _, held := range []bool{false, true} {
					if held {
						lock(t, c, us, 1, time.Second)
					}
					if tt.refused {
						unchanged(t, c, func() {
							got := run(t, c, aRenewal)
							if got.Status != script.Revoked || got.Holder != "" {
								t.Errorf("held %v: got %+v, want revoked", held, got)
							}
						})
						continue
					}
					want := map[bool]script.Status{false: script.Restored, true: script.Renewed}[held]
					wantStatus(t, run(t, c, aRenewal), want)
					must(t, c.Del(t.Context(), name))
				}
			})
		})
	}
}

// A holder whose name is a Lua pattern is compared as text.
func TestHoldersAreNoPatterns(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		must(t, c.Set(t.Context(), script.RevokedKey(name), us, time.Minute))
		req := aRenewal
		req.Holder = ".-"
		wantStatus(t, run(t, c, req), script.Restored)
	})
}
