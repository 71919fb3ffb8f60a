package script_test

import (
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// ruling is a decision about a node that was just checked for the first time.
func ruling(t *testing.T, c *redis.Client, quarantine time.Duration) script.Settle {
	t.Helper()
	req := aRuling
	req.Run, req.Quarantine = check(t, c, noon, aCheck).Run, quarantine
	return req
}

func TestSettleWritesTheDecision(t *testing.T) {
	for quarantine, until := range map[time.Duration]string{
		0: "0", ttl: "1795262430123457", time.Hour: "1795266000123457", time.Millisecond: "1795262430123457", // the TTL at least
	} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			req := ruling(t, c, quarantine)
			req.Nodes, req.Durable = 7, script.Durable
			want := record(t, c)
			want["until"], want["nodes"], want["durable"] = until, "7", "yes"
			got := sealedAt(t, c, noon, req, script.Seal{})
			if got != (script.Reply{Status: script.Settled, Now: noon}) {
				t.Errorf("got %+v, want settled", got)
			}
			if fields := record(t, c); !maps.Equal(fields, want) {
				t.Errorf("the record is %v, want %v", fields, want)
			}
		})
	}
}

// Several decide at once, each by what it has seen. The first to come is right: whoever comes later may have counted
// votes by it already.
func TestWhatIsSettledIsNeverChanged(t *testing.T) {
	for _, first := range []time.Duration{0, time.Minute} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			req := ruling(t, c, first)
			wantStatus(t, sealedAt(t, c, noon, req, script.Seal{}), script.Settled)
			unchanged(t, c, func() {
				for _, second := range []time.Duration{0, time.Second, time.Minute, time.Hour} {
					again := req
					again.Quarantine, again.TTL, again.Nodes, again.Durable = second, time.Hour, 3, script.Durable
					wantStatus(t, sealedAt(t, c, noon+minute/2, again, script.Seal{}), script.Settled)
				}
			})
		})
	}
}

// The decision was about a server with a name. It may have been started again since, or flushed and checked by somebody
// else.
func TestSettleOfAnotherNodeThanWasDecidedUpon(t *testing.T) {
	for title, spoil := range map[string]func(t *testing.T, c *redis.Client, req *script.Settle){
		"another incarnation": func(_ *testing.T, _ *redis.Client, req *script.Settle) { req.Incarnation = "two" },
		"no incarnation":      func(_ *testing.T, _ *redis.Client, req *script.Settle) { req.Incarnation = "" },
		"another run":         func(_ *testing.T, _ *redis.Client, req *script.Settle) { req.Run += "0" },
		"no record any more": func(t *testing.T, c *redis.Client, _ *script.Settle) {
			must(t, c.FlushAll(t.Context()))
		},
		"flushed, and checked again": func(t *testing.T, c *redis.Client, _ *script.Settle) {
			must(t, c.FlushAll(t.Context()))
			check(t, c, noon, another("two", script.NotAsked))
		},
	} {
		t.Run(title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				req := ruling(t, c, 0)
				spoil(t, c, &req)
				unchanged(t, c, func() {
					got := sealedAt(t, c, noon, req, script.Seal{})
					if got != (script.Reply{Status: script.Stranger, Now: noon}) {
						t.Errorf("got %+v, want a stranger", got)
					}
				})
			})
		})
	}
}

// The decision that a cluster is new was true when it was made.
func TestSettleExpires(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		req := ruling(t, c, 0)
		unchanged(t, c, func() {
			for _, late := range []int64{1, minute} {
				got := sealedAt(t, c, noon, req, script.Seal{Last: noon - late})
				if got != (script.Reply{Status: script.Expired, Now: noon}) {
					t.Errorf("%d us late: got %+v, want expired", late, got)
				}
			}
		})
		wantStatus(t, sealedAt(t, c, noon, req, script.Seal{Last: noon}), script.Settled)
	})
}

// A node's clock may be set. Who was never in quarantine is not by that.
func TestNewNodeIsInNoQuarantineByAnyClock(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, 0, script.NotDurable)
		for _, now := range []int64{1, noon - 1000*minute, noon, noon + 1000*minute} {
			if got := check(t, c, now, aCheck); got.Standing != script.StandingSettled || got.Quarantine != 0 {
				t.Errorf("at %d: got %+v, want no quarantine", now, got)
			}
			req := anAcquire
			req.Holder, req.Name = us, "another "+time.UnixMicro(now).String()
			wantStatus(t, sealedAt(t, c, now, req, script.Seal{Incarnation: "one"}), script.Granted)
		}
	})
}

// While one client decides, another with a longer TTL comes and tells the node of it.
func TestSettleKeepsTheLongestTTL(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		req := ruling(t, c, ttl)
		long := another("two", script.NotAsked)
		long.TTL = time.Hour
		check(t, c, noon, long)
		wantStatus(t, sealedAt(t, c, noon, req, script.Seal{}), script.Settled)
		if got := check(t, c, noon, aCheck); got.TTL != time.Hour || got.Quarantine != time.Hour {
			t.Errorf("got %+v, want an hour's TTL and quarantine", got)
		}
	})
	onBoth(t, func(t *testing.T, c *redis.Client) {
		req := ruling(t, c, 0)
		req.TTL = time.Hour
		wantStatus(t, sealedAt(t, c, noon, req, script.Seal{}), script.Settled)
		if got := check(t, c, noon, aCheck); got.TTL != time.Hour || got.Quarantine != 0 {
			t.Errorf("got %+v, want an hour's TTL and no quarantine", got)
		}
	})
}
