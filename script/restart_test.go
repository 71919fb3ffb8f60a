package script_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

func TestRestartBeginsAnIncarnationInQuarantine(t *testing.T) {
	for title, fields := range strangers {
		t.Run(title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				settled(t, c, 0, script.NotDurable)
				set(t, c, fields...)
				got := check(t, c, noon+minute, another("two", script.NotDurable))
				want := script.Record{
					Standing: script.StandingSettled, Incarnation: "two", Run: got.Run, Quarantine: ttl, TTL: ttl, Nodes: 5,
					Now: noon + minute,
				}
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				wantUntil(t, c, noon+minute+minute/2)
				if since := record(t, c)["since"]; since != "1795262460123457" {
					t.Errorf("it began at %q", since)
				}
				unchanged(t, c, func() { // neither a second check nor a second client begins it anew
					for _, again := range []script.Check{another("two", script.NotDurable), another("three", script.Durable)} {
						got := check(t, c, noon+minute+1_000_000, again)
						if got.Incarnation != "two" || got.Quarantine != ttl-time.Second {
							t.Errorf("got %+v, want what has begun", got)
						}
					}
				})
			})
		})
	}
}

// How long a node may have to wait is told by whoever knows of the longest TTL: the client, the record, or a quarantine
// that has not ended.
func TestQuarantineOfARestartIsTheLongest(t *testing.T) {
	for _, tt := range []struct {
		title                         string
		client, recorded, left, wants time.Duration
	}{
		{"the client's", time.Hour, time.Minute, 0, time.Hour},
		{"the record's", time.Minute, time.Hour, 0, time.Hour},
		{"what is left", time.Minute, time.Second, 2 * time.Hour, 2 * time.Hour},
		{"not what is left", time.Minute, time.Second, 59 * time.Second, time.Minute},
		{"weeks", 1000 * time.Hour, time.Second, 0, 1000 * time.Hour},
	} {
		t.Run(tt.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				settled(t, c, tt.left, script.NotDurable)
				set(t, c, "ttl", tt.recorded.Milliseconds(), "run", "another")
				req := another("two", script.NotDurable)
				req.TTL = tt.client
				got := check(t, c, noon, req)
				if longest := max(tt.client, tt.recorded); got.Quarantine != tt.wants || got.TTL != longest {
					t.Errorf("got %+v, want the quarantine %v, and the TTL %v", got, tt.wants, longest)
				}
				wantUntil(t, c, noon+tt.wants.Microseconds())
			})
		})
	}
}

// Whoever started the quarantine may not have heard of the longest TTL. When somebody comes who has, it lasts that long,
// from when this server began to remember.
func TestQuarantineThatHasBegunIsProlonged(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, 0, script.NotDurable)
		set(t, c, "run", "another")
		check(t, c, noon, another("two", script.NotDurable))
		for _, longest := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
			req := another("three", script.NotAsked)
			req.TTL = longest
			want := max(longest, time.Hour) - ttl/2 // 15 s ago
			if got := check(t, c, noon+minute/4, req); got.Incarnation != "two" || got.Quarantine != want {
				t.Errorf("%v: got %+v, want the quarantine %v", longest, got, want)
			}
			wantUntil(t, c, noon+max(longest, time.Hour).Microseconds())
		}
		// Once it has ended, it has ended: votes may have been counted since.
		req := another("three", script.NotAsked)
		req.TTL = 3 * time.Hour
		if got := check(t, c, noon+120*minute, req); got.Quarantine != 0 || got.TTL != req.TTL {
			t.Errorf("got %+v, want no quarantine", got)
		}
	})
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, 0, script.NotDurable)
		req := another("two", script.NotAsked)
		req.TTL = time.Hour
		if got := check(t, c, noon, req); got.Quarantine != 0 {
			t.Errorf("got %+v, want no quarantine: it is new", got)
		}
	})
}

// Whoever remembers everything goes on as if nothing had been; a quarantine, too, goes on.
func TestOnlyWhatWasAndIsDurableRemembers(t *testing.T) {
	for _, noted := range []script.Durability{script.NotAsked, script.NotDurable, script.Durable, "YES", "yes "} {
		for _, now := range []script.Durability{script.NotDurable, script.Durable, "maybe"} {
			for title, fields := range strangers {
				t.Run("noted "+string(noted)+", is "+string(now)+", "+title, func(t *testing.T) {
					onBoth(t, func(t *testing.T, c *redis.Client) {
						settled(t, c, time.Minute, noted)
						set(t, c, fields...)
						want := ttl
						if noted == script.Durable && now == script.Durable && fields[0] == "run" {
							want = 15 * time.Second
						}
						got := check(t, c, noon+minute*3/4, another("two", now))
						if got.Standing != script.StandingSettled || got.Incarnation != "two" || got.Quarantine != want {
							t.Errorf("got %+v, want another incarnation with the quarantine %v", got, want)
						}
						if noted := record(t, c)["durable"]; noted != string(now) {
							t.Errorf("noted %q, want %q", noted, now)
						}
					})
				})
			}
		}
	}
}
