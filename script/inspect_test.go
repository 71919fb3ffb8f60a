package script_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

func TestInspectChangesNothing(t *testing.T) {
	refusesOthers(t, aLook) // held, by whoever it is
	t.Run("ours", func(t *testing.T) {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			runAt(t, c, noon, anAcquire, 0)
			unchanged(t, c, func() {
				got := runAt(t, c, noon, aLook, 0)
				want := script.Reply{Status: script.Held, Fence: noon, TTL: got.TTL, Holder: us, Count: 1, Now: noon}
				if got != want || !about(got.TTL, ttl) {
					t.Errorf("got %+v, want %+v for %v", got, want, ttl)
				}
			})
		})
	})
	t.Run("absent", func(t *testing.T) {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			must(t, c.Set(t.Context(), script.FenceKey(name), noon, day))
			unchanged(t, c, func() {
				got := runAt(t, c, noon, aLook, 0)
				if got != (script.Reply{Status: script.Absent, Fence: noon, Now: noon}) {
					t.Errorf("got %+v, want absent, with the fence", got)
				}
			})
		})
	})
}

func TestProbeLeavesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		lock(t, c, them, 1, ttl)
		unchanged(t, c, func() {
			heard := hearing(t, c, aProbe.Name, func() {
				wantStatus(t, run(t, c, aProbe), script.Probed)
				wantStatus(t, run(t, c, aProbe), script.Probed)
			})
			wantHeard(t, heard, "{scratch} 1", "{scratch} 1")
		})
	})
}
