package script_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// full starts a server whose memory is full: it refuses every command that may take more.
func full(t *testing.T, prepare func(c *redis.Client)) *redis.Client {
	t.Helper()
	c := redisserver.Start(t).Client()
	for _, s := range script.All() {
		must(t, c.ScriptLoad(t.Context(), s.Source))
	}
	prepare(c)
	must(t, c.ConfigSet(t.Context(), "maxmemory-policy", "noeviction"))
	must(t, c.ConfigSet(t.Context(), "maxmemory", "1"))
	if err := c.Set(t.Context(), "more", "1", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("the memory is not full: %v", err)
	}
	return c
}

// What extends or frees a lock needs no memory.
func TestFullMemoryKeepsNoLockFromBeingExtendedOrFreed(t *testing.T) {
	const low = noon - 1
	held := func(fence int64) func(*redis.Client) {
		return func(c *redis.Client) {
			lock(t, c, us, 1, time.Second)
			if fence > 0 {
				must(t, c.Set(t.Context(), script.FenceKey(name), fence, time.Minute))
			}
		}
	}
	twice := aRenewal
	twice.Count = 2
	for _, tt := range []struct {
		title   string
		prepare func(*redis.Client)
		req     script.Request
		want    script.Status
	}{
		{"renewal, the token is stored", held(noon), aRenewal, script.Renewed},
		{"renewal, a greater token is stored", held(noon + 1), aRenewal, script.Renewed},
		{"renewal, a lower token is stored", held(low), aRenewal, script.Renewed},
		{"renewal, no token is stored", held(0), aRenewal, script.Renewed},
		{"renewal with another count", held(noon), twice, script.Renewed},
		{"restore", func(*redis.Client) {}, aRenewal, script.Restored},
		{"release, the token is stored", held(noon), aRelease, script.Released},
		{"release, a lower token is stored", held(low), aRelease, script.Released},
		{"rollback", held(low), aRollback, script.Released},
		{"release of a lock that is not there", func(*redis.Client) {}, aRelease, script.Absent},
		{"first step of a force-release", held(noon), aRevoke, script.Stored},
		{"second step of a force-release", held(noon), aForce, script.Released},
		{"inspection", held(noon), aLook, script.Held},
	} {
		t.Run(tt.title, func(t *testing.T) {
			c := full(t, tt.prepare)
			got := run(t, c, tt.req)
			wantStatus(t, got, tt.want)
			switch tt.want {
			case script.Renewed, script.Restored:
				wantTTL(t, c, name, ttl)
				if got.Fence >= noon {
					wantTTL(t, c, script.FenceKey(name), day)
				}
			case script.Released, script.Absent:
				if must(t, c.Exists(t.Context(), name)) != 0 {
					t.Error("the lock is still there")
				}
			}
		})
	}
}

// A lock that cannot be stored whole is not granted, and nothing of it stays.
func TestFullMemoryGrantsNothing(t *testing.T) {
	c := full(t, func(*redis.Client) {})
	unchanged(t, c, func() {
		if got, err := send(t.Context(), c, anAcquire, 0); err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("acquire: %+v, %v, want an error that says OOM", got, err)
		}
	})
}

// A client that connects while the memory is full still gets to renew and release.
func TestFullMemoryKeepsNoClientFromConnecting(t *testing.T) {
	c := full(t, func(c *redis.Client) {
		settled(t, c, 0, script.NotDurable)
	})
	for _, req := range []script.Check{
		aCheck,
		{Fresh: "two", TTL: 2 * ttl, Nodes: 5},
		{Fresh: "three", TTL: ttl, Nodes: 3},
	} {
		if got := check(t, c, noon, req); got.Standing != script.StandingSettled || got.Incarnation != aCheck.Fresh {
			t.Errorf("%+v finds %+v, want the record that is there", req, got)
		}
	}
}

// A hash of an application's may be larger than any reply can be.
func TestHashOfManyFieldsIsNoLock(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		var fields []string
		for i := range 1000 {
			fields = append(fields, fmt.Sprintf("field%d", i), "1")
		}
		must(t, c.HSet(t.Context(), name, fields))
		must(t, c.PExpire(t.Context(), name, time.Hour))
		for _, req := range []script.Request{anAcquire, aRenewal, aRaise, aRelease, aRollback, aForce, aLook} {
			got := run(t, c, req)
			if got.Status != script.Held || got.Holder != "" || got.Count != 0 || !about(got.TTL, time.Hour) {
				t.Errorf("%s: %+v, want held by nobody in particular", req.Script().Name, got)
			}
		}
		if n := must(t, c.HLen(t.Context(), name)); n != 1000 {
			t.Errorf("%d fields are left", n)
		}
		if got := run(t, c, aRevoke); got.Status != script.Stored || got.Holder != "" {
			t.Errorf("revoke: %+v", got)
		}
		wantStatus(t, run(t, c, script.ForceRelease{Name: name, Holders: []string{""}}), script.Released)
	})
}
