package script_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// expiring are the requests that must not take effect late, each with what it answers in time.
var expiring = []struct {
	title   string
	prepare func(t *testing.T, c *redis.Client)
	req     script.Request
	inTime  script.Status
}{
	{"acquire of a free lock", func(*testing.T, *redis.Client) {}, anAcquire, script.Granted},
	{"acquire of our lock", func(t *testing.T, c *redis.Client) { lock(t, c, us, 2, time.Minute) }, anAcquire, script.Already},
	{"renewal", func(t *testing.T, c *redis.Client) { lock(t, c, us, 2, time.Second) }, aRenewal, script.Renewed},
	{"restoring", func(*testing.T, *redis.Client) {}, aRenewal, script.Restored},
	{"raise", func(t *testing.T, c *redis.Client) { lock(t, c, us, 1, ttl) }, aRaise, script.Raised},
	{"revoke", func(t *testing.T, c *redis.Client) { lock(t, c, us, 1, ttl) }, aRevoke, script.Stored},
	{"force-release", func(t *testing.T, c *redis.Client) { lock(t, c, us, 1, ttl) }, aForce, script.Released},
}

func TestRequestsExpireToTheMicrosecond(t *testing.T) {
	for _, tt := range expiring {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				tt.prepare(t, c)
				unchanged(t, c, func() {
					for _, late := range []int64{1, 2, 1_000_000, noon - 1} {
						got := runAt(t, c, noon, tt.req, noon-late)
						if got != (script.Reply{Status: script.Expired, Now: noon}) {
							t.Errorf("%d us late: got %+v, want expired", late, got)
						}
					}
				})
				for _, last := range []int64{noon, noon + 1, 0} {
					must(t, c.FlushAll(t.Context()))
					tt.prepare(t, c)
					wantStatus(t, runAt(t, c, noon, tt.req, last), tt.inTime)
				}
			})
		})
	}
}

func TestRequestsExpireOnTheNodesOwnClock(t *testing.T) {
	for _, tt := range expiring {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				tt.prepare(t, c)
				now := must(t, c.Time(t.Context())).UnixMicro()
				unchanged(t, c, func() {
					got, err := send(t.Context(), c, tt.req, now-1)
					if err != nil || got.Status != script.Expired || got.Now < now {
						t.Errorf("got %+v, %v, want expired", got, err)
					}
				})
				got, err := send(t.Context(), c, tt.req, now+time.Hour.Microseconds())
				if err != nil || got.Status != tt.inTime {
					t.Errorf("got %+v, %v, want %s", got, err, tt.inTime)
				}
			})
		})
	}
}

// What only takes away its own holder may arrive whenever it likes: gone is gone. A force-release takes away whoever is
// there, and then that is somebody else.
func TestReleasesNeverExpire(t *testing.T) {
	for _, req := range []script.Request{aRelease, aRollback} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			lock(t, c, us, 1, ttl)
			got, err := send(t.Context(), c, req, 1)
			if err != nil || got.Status != script.Released {
				t.Errorf("%s: got %+v, %v, want released", req.Script().Name, got, err)
			}
		})
	}
}

// The later of two requests may have been delivered first.
func TestNothingShortensALock(t *testing.T) {
	for _, tt := range []struct {
		title           string
		left, ask, want time.Duration
	}{
		{"shorter", time.Second, ttl, ttl},
		{"longer", time.Hour, ttl, time.Hour},
		{"without an end", 0, ttl, ttl},
	} {
		for _, with := range []func(time.Duration) script.Request{
			func(d time.Duration) script.Request { r := anAcquire; r.TTL = d; return r },
			func(d time.Duration) script.Request { r := aRenewal; r.TTL = d; return r },
		} {
			req := with(tt.ask)
			t.Run(req.Script().Name+" of a lock "+tt.title, func(t *testing.T) {
				onBoth(t, func(t *testing.T, c *redis.Client) {
					lock(t, c, us, 1, tt.left)
					run(t, c, req)
					wantTTL(t, c, name, tt.want)
				})
			})
		}
	}
	t.Run("raise", func(t *testing.T) {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			lock(t, c, us, 1, time.Hour)
			run(t, c, aRaise)
			wantTTL(t, c, name, time.Hour)
		})
	})
}

// fencing are the requests that write the fence.
var fencing = []struct {
	title string
	held  bool
	req   func(ttl time.Duration) script.Request
}{
	{"grant", false, func(d time.Duration) script.Request { r := anAcquire; r.TTL = d; return r }},
	{"renewal", true, func(d time.Duration) script.Request { r := aRenewal; r.TTL = d; return r }},
	{"restoring", false, func(d time.Duration) script.Request { r := aRenewal; r.TTL = d; return r }},
	{"raise", true, func(d time.Duration) script.Request { r := aRaise; r.TTL = d; return r }},
	{"release on a node that was missed", false, func(d time.Duration) script.Request { r := aRelease; r.TTL = d; return r }},
}

func TestFenceOutlivesTheLock(t *testing.T) {
	for _, tt := range fencing {
		for lock, want := range map[time.Duration]time.Duration{
			ttl:                                 day,
			12 * time.Hour:                      day,
			12*time.Hour + time.Minute:          day + 2*time.Minute,
			100 * day:                           200 * day,
			1500*time.Microsecond + 100*365*day: 2 * (100*365*day + time.Millisecond), // cut off to milliseconds
		} {
			t.Run(tt.title+" for "+lock.String(), func(t *testing.T) {
				onBoth(t, func(t *testing.T, c *redis.Client) {
					if tt.held {
						must(t, c.HSet(t.Context(), name, us, 1))
					}
					must(t, c.Set(t.Context(), script.FenceKey(name), 7, time.Minute))
					run(t, c, tt.req(lock))
					wantTTL(t, c, script.FenceKey(name), want)
				})
			})
		}
	}
}

// A counter may be ahead of the clock, since one was wrong once. Were it gone before the clock has overtaken it, the next
// token would be less than the last.
func TestFenceThatIsAheadOfTheClockOutlivesTheDifference(t *testing.T) {
	for _, tt := range fencing {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				if tt.held {
					must(t, c.HSet(t.Context(), name, us, 1))
				}
				ahead := noon + (1000 * day).Microseconds()
				req := tt.req(ttl)
				if release, ok := req.(script.Release); ok {
					release.Token = ahead
					req = release
				} else {
					must(t, c.Set(t.Context(), script.FenceKey(name), ahead, time.Minute))
				}
				runAt(t, c, noon, req, 0)
				wantTTL(t, c, script.FenceKey(name), 1001*day)
			})
		})
	}
}

// 1.7953e+15 is what Lua makes of a microsecond that is turned into a string; the next tonumber would read a fence
// from minutes ago.
func TestNumbersAreWrittenOut(t *testing.T) {
	digits := regexp.MustCompile(`^[0-9]{16}$`)
	for _, tt := range fencing {
		for title, stored := range map[string]int64{"as it was sent": 0, "as it was stored, or one more": noon} {
			t.Run(tt.title+" "+title, func(t *testing.T) {
				onBoth(t, func(t *testing.T, c *redis.Client) {
					if tt.held {
						must(t, c.HSet(t.Context(), name, us, 1))
					}
					want := noon
					if stored > 0 {
						must(t, c.Set(t.Context(), script.FenceKey(name), stored, day))
						if tt.title == "grant" {
							want++
						}
					}
					runAt(t, c, noon, tt.req(ttl), 0)
					if raw := fence(t, c); !digits.MatchString(raw) || raw != strconv.FormatInt(want, 10) {
						t.Errorf("the fence is written %q, want %d", raw, want)
					}
				})
			})
		}
	}
}
