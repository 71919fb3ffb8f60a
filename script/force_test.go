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

func TestRevokeStoresTheHoldersAndDeletesNothing(t *testing.T) {
	nothing := func(*testing.T, *redis.Client) {}
	theirs := func(left time.Duration) func(*testing.T, *redis.Client) {
		return func(t *testing.T, c *redis.Client) { lock(t, c, them, 2, left) }
	}
	free := script.Reply{Status: script.Stored}
	held := func(left time.Duration) script.Reply {
		return script.Reply{Status: script.Stored, TTL: left, Holder: them, Count: 2}
	}
	for _, tt := range []struct {
		title   string
		prepare func(*testing.T, *redis.Client)
		holders []string
		want    script.Reply
		revoked string
		lives   time.Duration
	}{
		{"nothing there", nothing, nil, free, "", 0},
		{"nothing there, a holder named", nothing, []string{us}, free, us, ttl},
		{"the same holder named twice", nothing, []string{us, us}, free, us, ttl},
		{"no holder named", nothing, []string{""}, free, "", 0},
		{"a holder found is not revoked unless named", theirs(time.Second), nil, held(time.Second), "", 0},
		{"a holder found and named", theirs(time.Second), []string{them}, held(time.Second), them, ttl},
		{"another one named", theirs(time.Second), []string{us}, held(time.Second), us, ttl},
		{"two named, one of them part of the other", theirs(time.Second), []string{them, them[:8]}, held(time.Second), them + " " + them[:8], ttl},
		{"a lock that lives longer", theirs(time.Hour), []string{them}, held(time.Hour), them, time.Hour},
		{"a lock without an end", theirs(0), []string{them}, held(script.NoExpiry), them, ttl},
		{"a key of another type", func(t *testing.T, c *redis.Client) { must(t, c.Set(t.Context(), name, "x", time.Minute)) },
			[]string{""}, script.Reply{Status: script.Stored, TTL: time.Minute}, "", 0},
		{"a list, a holder named", func(t *testing.T, c *redis.Client) { must(t, c.RPush(t.Context(), name, "x")) },
			[]string{us}, script.Reply{Status: script.Stored, TTL: script.NoExpiry}, us, ttl},
		{"revoked before, for longer", func(t *testing.T, c *redis.Client) {
			must(t, c.Set(t.Context(), script.RevokedKey(name), us, time.Hour))
			lock(t, c, them, 2, time.Second)
		}, []string{us, them}, held(time.Second), us + " " + them, time.Hour},
	} {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				tt.prepare(t, c)
				before := must(t, c.Exists(t.Context(), name))
				for range 2 { // sent twice is the same as sent once
					got := run(t, c, script.Revoke{Name: name, Holders: tt.holders, Lives: ttl})
					if got.Status != tt.want.Status || got.Holder != tt.want.Holder || got.Count != tt.want.Count || !about(got.TTL, tt.want.TTL) {
						t.Errorf("got %+v, want %+v", got, tt.want)
					}
					if list := revoked(t, c); list != tt.revoked {
						t.Errorf("revoked %q, want %q", list, tt.revoked)
					}
					if tt.revoked != "" {
						wantTTL(t, c, script.RevokedKey(name), tt.lives)
					}
				}
				if must(t, c.Exists(t.Context(), name)) != before {
					t.Error("the lock was deleted")
				}
			})
		})
	}
}

func TestForceReleaseDeletesTheLockOfTheHoldersNamed(t *testing.T) {
	ours := func(t *testing.T, c *redis.Client) { lock(t, c, us, 2, time.Minute) }
	text := func(t *testing.T, c *redis.Client) { must(t, c.Set(t.Context(), name, "x", time.Minute)) }
	released := script.Reply{Status: script.Released, TTL: time.Minute, Holder: us, Count: 2}
	for _, tt := range []struct {
		title   string
		prepare func(*testing.T, *redis.Client)
		holders []string
		want    script.Reply
	}{
		{"nothing there", func(*testing.T, *redis.Client) {}, []string{us}, script.Reply{Status: script.Absent}},
		{"the holder named", ours, []string{us}, released},
		{"the second one named", ours, []string{them, us}, released},
		{"somebody else", ours, []string{them}, script.Reply{Status: script.Held, TTL: time.Minute, Holder: us, Count: 2}},
		{"a part of the holder named", ours, []string{us[:8], us + "0"}, script.Reply{Status: script.Held, TTL: time.Minute, Holder: us, Count: 2}},
		{"nobody named", ours, nil, script.Reply{Status: script.Held, TTL: time.Minute, Holder: us, Count: 2}},
		{"a holder, and a key of another type named", ours, []string{""}, script.Reply{Status: script.Held, TTL: time.Minute, Holder: us, Count: 2}},
		{"a key of another type", text, []string{us, ""}, script.Reply{Status: script.Released, TTL: time.Minute}},
		{"a key of another type, and a holder named", text, []string{us}, script.Reply{Status: script.Held, TTL: time.Minute}},
	} {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				tt.prepare(t, c)
				before := must(t, c.Exists(t.Context(), name))
				req := script.ForceRelease{Name: name, Holders: tt.holders}
				got := run(t, c, req)
				if got.Status != tt.want.Status || got.Holder != tt.want.Holder || got.Count != tt.want.Count || !about(got.TTL, tt.want.TTL) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
				want := before
				if tt.want.Status == script.Released {
					want = 0
					wantStatus(t, run(t, c, req), script.Absent) // sent twice
				}
				if must(t, c.Exists(t.Context(), name)) != want {
					t.Errorf("%d locks are left, want %d", 1-want, want)
				}
			})
		})
	}
}

// The list of the revoked does not grow for ever, and those who were revoked last stay on it.
func TestRevokeForgetsTheOldestOfVeryMany(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		holder := func(i int) string { return fmt.Sprintf("%s:%d", them, i) }
		const many = 200
		for i := range many {
			run(t, c, script.Revoke{Name: name, Holders: []string{holder(i)}, Lives: ttl})
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

// The point of it all: the holder renews in the very next moment, on this node and on one that never had the lock.
func TestRevokedHolderCannotComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		for _, held := range []bool{true, false} {
			must(t, c.FlushAll(t.Context()))
			if held {
				lock(t, c, us, 1, ttl)
			}
			run(t, c, script.Revoke{Name: name, Holders: []string{them, us}, Lives: ttl})
			wantStatus(t, run(t, c, aRenewal), script.Revoked)
			run(t, c, script.ForceRelease{Name: name, Holders: []string{them, us}})
			wantStatus(t, run(t, c, aRenewal), script.Revoked)
			next := anAcquire
			next.Holder = "next:1"
			wantStatus(t, run(t, c, next), script.Granted)
			wantStatus(t, run(t, c, aRenewal), script.Revoked)
		}
	})
}
