package script_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// hearing runs f and returns what was published on the lock's channel meanwhile.
func hearing(t *testing.T, c *redis.Client, name string, f func()) []string {
	t.Helper()
	sub := c.Subscribe(t.Context(), "redisson_lock__channel:{"+name+"}", "redisson_lock__channel:"+name)
	defer sub.Close()
	for range 2 {
		if _, err := sub.ReceiveTimeout(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	f()
	const over = "over"
	must(t, c.Publish(t.Context(), "redisson_lock__channel:{"+name+"}", over))
	var heard []string
	for {
		msg, err := sub.ReceiveTimeout(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		m, ok := msg.(*redis.Message)
		switch {
		case !ok:
			t.Fatalf("got %v on the subscription", msg)
		case m.Payload == over:
			return heard
		default:
			heard = append(heard, strings.TrimPrefix(m.Channel, "redisson_lock__channel:")+" "+m.Payload)
		}
	}
}

func wantHeard(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func TestReleaseAnnouncesOnce(t *testing.T) {
	for _, tt := range []struct {
		req  script.Request
		want string
	}{{aRelease, "0"}, {aRollback, "1"}, {aForce, "0"}} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			lock(t, c, us, 2, ttl)
			heard := hearing(t, c, name, func() {
				wantStatus(t, run(t, c, tt.req), script.Released)
				wantStatus(t, run(t, c, tt.req), script.Absent)
			})
			wantHeard(t, heard, "{"+name+"} "+tt.want)
			if n := must(t, c.Exists(t.Context(), name)); n != 0 {
				t.Error("the lock is still there")
			}
		})
	}
}

// Redisson adds no braces to a name that has some: the hash tag is in there already.
func TestChannelHasRedissonsBraces(t *testing.T) {
	for lockName, channel := range map[string]string{
		"plain":        "{plain}",
		"{tag}:rest":   "{tag}:rest",
		"rest:{tag}":   "rest:{tag}",
		"open{":        "open{",
		"close}":       "{close}}",
		"with a space": "{with a space}",
	} {
		t.Run(lockName, func(t *testing.T) {
			if got := script.Channel(lockName); got != "redisson_lock__channel:"+channel {
				t.Errorf("Channel(%q) = %q", lockName, got)
			}
			onBoth(t, func(t *testing.T, c *redis.Client) {
				must(t, c.HSet(t.Context(), lockName, us, 1))
				heard := hearing(t, c, lockName, func() {
					run(t, c, script.Release{Name: lockName, Holder: us, Payload: script.Free, TTL: ttl})
				})
				wantHeard(t, heard, channel+" 0")
			})
		})
	}
}

func TestReleaseIsRefusedToOthers(t *testing.T) {
	refusesOthers(t, aRelease)
	t.Run("rollback", func(t *testing.T) { refusesOthers(t, aRollback) })
	t.Run("silently", func(t *testing.T) {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			lock(t, c, them, 1, ttl)
			wantHeard(t, hearing(t, c, name, func() { run(t, c, aRelease) }))
		})
	})
}

// The last request of a lease tells its token to nodes that were missed, whoever has the lock there; a rollback, whose
// attempt has no token, tells none.
func TestReleaseRaisesTheFence(t *testing.T) {
	for title, prepare := range map[string]func(*testing.T, *redis.Client){
		"ours":        func(t *testing.T, c *redis.Client) { lock(t, c, us, 1, ttl) },
		"absent":      func(*testing.T, *redis.Client) {},
		"another's":   func(t *testing.T, c *redis.Client) { lock(t, c, them, 1, ttl) },
		"a wrong key": func(t *testing.T, c *redis.Client) { must(t, c.Set(t.Context(), name, "x", 0)) },
	} {
		for _, stored := range []int64{0, 1, noon - 1, noon, noon + 1} {
			t.Run(title+" "+strconv.FormatInt(stored, 10), func(t *testing.T) {
				onBoth(t, func(t *testing.T, c *redis.Client) {
					prepare(t, c)
					if stored > 0 {
						must(t, c.Set(t.Context(), script.FenceKey(name), stored, time.Minute))
					}
					before := fence(t, c)
					lives := ttls(t, c)[script.FenceKey(name)]
					run(t, c, aRollback)
					if got := fence(t, c); got != before {
						t.Errorf("a rollback moved the fence from %q to %q", before, got)
					}
					prepare(t, c)
					got := run(t, c, aRelease)
					if want := max(stored, noon); got.Fence != want || fence(t, c) != strconv.FormatInt(want, 10) {
						t.Errorf("got %+v and stored %q, want %d", got, fence(t, c), want)
					}
					if stored < noon {
						lives = day
					}
					wantTTL(t, c, script.FenceKey(name), lives)
				})
			})
		}
	}
}

// Whoever gives a lock back is told how many have heard of it: in place of the hold count, which is nobody's any more.
func TestReleaseTellsHowManyHeardOfIt(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		for listeners := range 3 {
			if listeners > 0 {
				sub := c.Subscribe(t.Context(), script.Channel(name))
				defer sub.Close()
				if _, err := sub.ReceiveTimeout(t.Context(), 10*time.Second); err != nil {
					t.Fatal(err)
				}
			}
			lock(t, c, us, 2, ttl)
			got := run(t, c, aRelease)
			wantStatus(t, got, script.Released)
			if got.Count != listeners {
				t.Errorf("told that %d heard of it, want %d", got.Count, listeners)
			}
			if got := run(t, c, aRelease); got.Count != 0 {
				t.Errorf("a release of nothing says that %d heard of it", got.Count)
			}
		}
	})
}

// A client that may not publish may still release; then nobody has heard of it.
func TestReleaseWithoutPermissionToPublishTellsOfNobody(t *testing.T) {
	s := redisserver.Start(t)
	sub := s.Client().Subscribe(t.Context(), script.Channel(name))
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	lock(t, s.Client(), us, 2, ttl)
	got := run(t, without(t, s, "publish"), aRelease)
	wantStatus(t, got, script.Released)
	if got.Count != 0 {
		t.Errorf("told that %d heard of it", got.Count)
	}
}
