package script_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

func revoked(t *testing.T, c *redis.Client) string {
	t.Helper()
	if must(t, c.Exists(t.Context(), script.RevokedKey(name))) == 0 {
		return ""
	}
	return must(t, c.Get(t.Context(), script.RevokedKey(name)))
}

func TestForceRelease(t *testing.T) {
	nothing := func(*testing.T, *redis.Client) {}
	theirs := func(left time.Duration) func(*testing.T, *redis.Client) {
		return func(t *testing.T, c *redis.Client) { lock(t, c, them, 2, left) }
	}
	for _, tt := range []struct {
		title   string
		prepare func(*testing.T, *redis.Client)
		holders []string
		want    script.Reply
		revoked string
		lives   time.Duration
	}{
		{"nothing there", nothing, nil, script.Reply{Status: script.Absent}, "", 0},
		{"nothing there, a holder named", nothing, []string{us}, script.Reply{Status: script.Absent}, us, ttl},
		{"the same holder named twice", nothing, []string{us, us}, script.Reply{Status: script.Absent}, us, ttl},
		{"no holder named", nothing, []string{""}, script.Reply{Status: script.Absent}, "", 0},
		{"a holder found", theirs(time.Second), nil,
			script.Reply{Status: script.Released, TTL: time.Second, Holder: them, Count: 2}, them, ttl},
		{"a holder found and named", theirs(time.Second), []string{them},
			script.Reply{Status: script.Released, TTL: time.Second, Holder: them, Count: 2}, them, ttl},
		{"one found, one named", theirs(time.Second), []string{us},
			script.Reply{Status: script.Released, TTL: time.Second, Holder: them, Count: 2}, them + " " + us, ttl},
		{"one named is a part of the one found", theirs(time.Second), []string{them[:8]},
			script.Reply{Status: script.Released, TTL: time.Second, Holder: them, Count: 2}, them + " " + them[:8], ttl},
		{"a lock that lives longer", theirs(time.Hour), nil,
			script.Reply{Status: script.Released, TTL: time.Hour, Holder: them, Count: 2}, them, time.Hour},
		{"a lock without an end", theirs(0), nil,
			script.Reply{Status: script.Released, TTL: script.NoExpiry, Holder: them, Count: 2}, them, ttl},
		{"a key of another type", func(t *testing.T, c *redis.Client) { must(t, c.Set(t.Context(), name, "x", time.Minute)) },
			nil, script.Reply{Status: script.Released, TTL: time.Minute}, "", 0},
		{"a list, a holder named", func(t *testing.T, c *redis.Client) { must(t, c.RPush(t.Context(), name, "x")) },
			[]string{us}, script.Reply{Status: script.Released, TTL: script.NoExpiry}, us, ttl},
		{"revoked before, for longer", func(t *testing.T, c *redis.Client) {
			must(t, c.Set(t.Context(), script.RevokedKey(name), us, time.Hour))
			lock(t, c, them, 2, time.Second)
		}, []string{us}, script.Reply{Status: script.Released, TTL: time.Second, Holder: them, Count: 2}, us + " " + them, time.Hour},
	} {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				tt.prepare(t, c)
				req := aForce
				req.Holders = tt.holders
				got := run(t, c, req)
				if got.Status != tt.want.Status || got.Holder != tt.want.Holder || got.Count != tt.want.Count || !about(got.TTL, tt.want.TTL) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
				if list := revoked(t, c); list != tt.revoked {
					t.Errorf("revoked %q, want %q", list, tt.revoked)
				}
				if tt.revoked != "" {
					wantTTL(t, c, script.RevokedKey(name), tt.lives)
				}
				if must(t, c.Exists(t.Context(), name)) != 0 {
					t.Error("the lock is still there")
				}
				wantStatus(t, run(t, c, req), script.Absent) // sent twice
				if list := revoked(t, c); list != tt.revoked {
					t.Errorf("sent twice, revoked %q, want %q", list, tt.revoked)
				}
			})
		})
	}
}

// The point of it all: the holder renews in the very next moment, on this node and on one that never had the lock.
// The list of the revoked does not grow for ever, and those who were revoked last stay on it.
func TestForceReleaseForgetsTheOldestOfVeryMany(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		holder := func(i int) string { return fmt.Sprintf("%s:%d", them, i) }
		const many = 200
		for i := range many {
			req := aForce
			req.Holders = []string{holder(i)}
			run(t, c, req)
		}
		list := revoked(t, c)
		if len(list) > 2000 || len(list) < 1900 {
			t.Errorf("the list has %d bytes, want 2000 at most, and not much less", len(list))
		}
		if who := strings.Fields(list); who[len(who)-1] != holder(many-1) || slices.Contains(who, holder(0)) {
			t.Errorf("from %s to %s, want the newest", who[0], who[len(who)-1])
		}
		for i, want := range map[int]script.Status{many - 1: script.Revoked, 0: script.Restored} {
			late := aRenewal
			late.Holder = holder(i)
			must(t, c.Del(t.Context(), name))
			wantStatus(t, run(t, c, late), want)
		}
	})
}

func TestForceReleasedHolderCannotComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		for _, held := range []bool{true, false} {
			must(t, c.FlushAll(t.Context()))
			if held {
				lock(t, c, us, 1, ttl)
			}
			req := aForce
			req.Holders = []string{them, us}
			run(t, c, req)
			wantStatus(t, run(t, c, aRenewal), script.Revoked)
			next := anAcquire
			next.Holder = "next:1"
			wantStatus(t, run(t, c, next), script.Granted)
			wantStatus(t, run(t, c, aRenewal), script.Revoked)
		}
	})
}
