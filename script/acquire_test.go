package script_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

func TestAcquireOfAFreeLock(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		got := runAt(t, c, noon, anAcquire, 0)
		want := script.Reply{Status: script.Granted, Fence: noon, TTL: got.TTL, Holder: us, Count: 1, Now: noon}
		if got != want || !about(got.TTL, ttl) {
			t.Errorf("got %+v, want %+v for %v", got, want, ttl)
		}
		wantHash(t, c, map[string]string{us: "1"})
		wantTTL(t, c, name, ttl)
		if n := must(t, c.DBSize(t.Context())); n != 2 {
			t.Errorf("the node has %v, want a lock and its fence", dump(t, c))
		}
	})
}

// A lost reply makes a client ask again; an echo of the network does it without asking.
func TestAcquireSentTwiceIsAcquireSentOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		first := runAt(t, c, noon, anAcquire, 0)
		unchanged(t, c, func() {
			for i := range int64(3) {
				again := anAcquire
				again.Proposal += i
				got := runAt(t, c, noon+i*1_000_000, again, 0)
				wantStatus(t, got, script.Already)
				if got.Fence != first.Fence {
					t.Errorf("a resent acquire moved the fence from %d to %d", first.Fence, got.Fence)
				}
			}
		})
	})
}

// An overtaken acquire carries an older count: whoever sends requests sees to their order, the script states what shall
// be.
func TestAcquireStatesTheCount(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		for _, count := range []int{1, 2, 2, 3, 1} {
			req := anAcquire
			req.Count = count
			if got := run(t, c, req); got.Count != count {
				t.Errorf("got %+v, want the count %d", got, count)
			}
			wantHash(t, c, map[string]string{us: strconv.Itoa(count)})
		}
	})
}

func TestAcquireIsRefusedToOthers(t *testing.T) { refusesOthers(t, anAcquire) }

func TestFenceGrowsWithEveryGrant(t *testing.T) {
	const reach = int64(clamp / time.Microsecond)
	for _, tt := range []struct {
		title            string
		stored, proposal int64
		want             int64
	}{
		{"nothing stored", 0, noon, noon},
		{"a proposal above the fence", noon - 10, noon, noon},
		{"a proposal just above the fence", noon - 1, noon, noon},
		{"a proposal equal to the fence", noon, noon, noon + 1},
		{"a proposal below the fence", noon + 5000, noon, noon + 5001},
		{"a proposal as far ahead as allowed", 0, noon + reach, noon + reach},
		{"a proposal further ahead", 0, noon + reach + 1, noon + reach},
		{"a proposal of the year 2255", 0, 1<<53 - 2, noon + reach},
		{"a proposal beyond all numbers", 0, 1<<63 - 1, noon + reach},
		{"a proposal as far behind as allowed", 0, noon - reach, noon - reach},
		{"a proposal further behind", 0, noon - reach - 1, noon - reach},
		{"no proposal", 0, 0, noon - reach},
		{"a negative proposal", 0, -1 << 63, noon - reach},
		{"a proposal clamped to below the fence", noon, 1, noon + 1},
		{"a fence far ahead of every clock", 2 * noon, noon, 2*noon + 1},
	} {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				if tt.stored != 0 {
					must(t, c.Set(t.Context(), script.FenceKey(name), tt.stored, day))
				}
				req := anAcquire
				req.Proposal = tt.proposal
				got := runAt(t, c, noon, req, 0)
				if got.Status != script.Granted || got.Fence != tt.want {
					t.Errorf("got %+v, want granted with the fence %d", got, tt.want)
				}
				if raw := fence(t, c); raw != strconv.FormatInt(tt.want, 10) {
					t.Errorf("stored %q, want %d", raw, tt.want)
				}
			})
		})
	}
}

// Tokens that are asked for besides lie between what was stored before and the fence, whichever of counter and proposal is
// ahead, and whoever asks again gets no others.
func TestTokensThatAreAskedForBesidesLieBelowTheFence(t *testing.T) {
	const more = 40
	onBoth(t, func(t *testing.T, c *redis.Client) {
		req := anAcquire
		req.More = more
		for _, stored := range []int64{0, noon - 1, noon, noon + 1_000_000} {
			must(t, c.Del(t.Context(), name))
			must(t, c.Set(t.Context(), script.FenceKey(name), stored, day))
			got := runAt(t, c, noon, req, 0)
			wantStatus(t, got, script.Granted)
			if lowest := got.Fence - more; lowest <= stored || lowest != max(stored+1, req.Proposal) {
				t.Errorf("stored %d, granted %d to %d", stored, lowest, got.Fence)
			}
			again := runAt(t, c, noon, req, 0)
			if again.Status != script.Already || again.Fence != got.Fence || fence(t, c) != strconv.FormatInt(got.Fence, 10) {
				t.Errorf("asked again: %+v after %d", again, got.Fence)
			}
		}
		// There are too few left.
		must(t, c.Del(t.Context(), name))
		must(t, c.Set(t.Context(), script.FenceKey(name), int64(1<<53-more-1), day))
		unchanged(t, c, func() { wantStatus(t, runAt(t, c, noon, req, 0), script.Exhausted) })
		must(t, c.Set(t.Context(), script.FenceKey(name), int64(1<<53-more-2), day))
		if got := runAt(t, c, noon, req, 0); got.Fence != 1<<53-1 {
			t.Errorf("granted up to %d, want 2^53-1", got.Fence)
		}
	})
}

func TestExhaustedFenceGrantsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		must(t, c.Set(t.Context(), script.FenceKey(name), int64(1<<53-2), day))
		got := runAt(t, c, noon, anAcquire, 0)
		if got.Status != script.Granted || got.Fence != 1<<53-1 || fence(t, c) != "9007199254740991" {
			t.Fatalf("got %+v and stored %q, want the last fence of all, 2^53-1", got, fence(t, c))
		}
		for _, stored := range []int64{1<<53 - 1, 1 << 53, 1<<53 + 2, 1<<63 - 1} {
			must(t, c.Del(t.Context(), name))
			must(t, c.Set(t.Context(), script.FenceKey(name), stored, day))
			unchanged(t, c, func() { wantStatus(t, runAt(t, c, noon, anAcquire, 0), script.Exhausted) })
		}
	})
}

// Whatever stands in the fence's place, nothing is granted without a token.
func TestSpoiltFenceGrantsNothing(t *testing.T) {
	for title, spoil := range map[string]func(t *testing.T, c *redis.Client){
		"a word": func(t *testing.T, c *redis.Client) {
			must(t, c.Set(t.Context(), script.FenceKey(name), "many", 0))
		},
		"a list": func(t *testing.T, c *redis.Client) { must(t, c.RPush(t.Context(), script.FenceKey(name), 1)) },
	} {
		t.Run(title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				spoil(t, c)
				unchanged(t, c, func() {
					if got, err := send(t.Context(), c, anAcquire, 0); err == nil {
						t.Errorf("got %+v, want an error", got)
					}
				})
			})
		})
	}
}
