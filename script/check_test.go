package script_test

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// tryCheck checks a node whose clock shows now.
func tryCheck(t *testing.T, c *redis.Client, now int64, req script.Check) (script.Record, error) {
	t.Helper()
	v, err := evalAt(t, c, now, req, script.Seal{})
	if err != nil {
		return script.Record{}, err
	}
	return script.ParseRecord(v)
}

// check is one that has to work.
func check(t *testing.T, c *redis.Client, now int64, req script.Check) script.Record {
	t.Helper()
	r, err := tryCheck(t, c, now, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// another is the check of a client that comes later, and would begin an incarnation of its own.
func another(fresh string, durable script.Durability) script.Check {
	req := aCheck
	req.Fresh, req.Durable = fresh, durable
	return req
}

// record is the node's record as it is written.
func record(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	return must(t, c.HGetAll(t.Context(), script.RecordKey))
}

// settled gives a node a record, with the incarnation "one", and settles it. durable is what was noted then.
func settled(t *testing.T, c *redis.Client, quarantine time.Duration, durable script.Durability) {
	t.Helper()
	r := check(t, c, noon, aCheck)
	ruling := aRuling
	ruling.Run, ruling.Quarantine, ruling.Durable = r.Run, quarantine, durable
	wantStatus(t, sealedAt(t, c, noon, ruling, script.Seal{}), script.Settled)
}

// set changes a field of the record, as if it were another server's.
func set(t *testing.T, c *redis.Client, fields ...any) {
	t.Helper()
	must(t, c.HSet(t.Context(), script.RecordKey, fields...))
}

func wantUntil(t *testing.T, c *redis.Client, want int64) {
	t.Helper()
	if got := record(t, c)["until"]; got != strconv.FormatInt(want, 10) {
		t.Errorf("the quarantine is written to end at %q, want %d", got, want)
	}
}

// minute is one, in microseconds.
const minute int64 = 60_000_000

// A lost answer makes a client check again, and others check, too: the first has begun the incarnation for all of them.
func TestCheckOfANodeWithoutARecordLeavesTheDecisionToOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		first := check(t, c, noon, aCheck)
		want := script.Record{
			Standing: script.StandingUnsettled, Incarnation: "one", Run: first.Run, TTL: ttl, Now: noon,
		}
		if first != want {
			t.Errorf("got %+v, want %+v", first, want)
		}
		fields := record(t, c)
		delete(fields, "replication")
		if want := map[string]string{
			"incarnation": "one", "run": first.Run, "since": "1795262400123457", "ttl": "30000", "nodes": "5", "durable": "",
		}; !maps.Equal(fields, want) {
			t.Errorf("the record is %v, want %v", fields, want)
		}
		want.Nodes, want.Age, want.Now = 5, time.Minute, noon+minute
		unchanged(t, c, func() {
			for _, req := range []script.Check{aCheck, another("two", script.NotAsked), another("three", script.Durable)} {
				if got := check(t, c, noon+minute, req); got != want {
					t.Errorf("%s: got %+v, want %+v", req.Fresh, got, want)
				}
			}
		})
	})
}

func TestCheckOfTheServerOnRecord(t *testing.T) {
	for _, quarantine := range []time.Duration{0, 2 * time.Minute} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			settled(t, c, quarantine, script.NotDurable)
			unchanged(t, c, func() {
				for late, left := range map[int64]time.Duration{
					0: quarantine, 999: quarantine, 1000: quarantine - time.Millisecond, // never told shorter than it is
					minute: quarantine - time.Minute, 2*minute - 1: time.Millisecond, 2 * minute: 0, 3 * minute: 0,
				} {
					got := check(t, c, noon+late, another("two", script.NotAsked))
					if quarantine == 0 {
						left = 0
					}
					if got.Standing != script.StandingSettled || got.Incarnation != "one" || got.Quarantine != left {
						t.Errorf("%d us later: got %+v, want the quarantine %v", late, got, left)
					}
				}
			})
		})
	}
}

func TestAgeOfARecordFromTheFutureIsNegative(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, 0, script.NotDurable)
		if got := check(t, c, noon-minute, aCheck); got.Age != -time.Minute {
			t.Errorf("got %+v, want an age of -1 minute", got)
		}
	})
}

// strangers are the ways in which the record is another server's.
var strangers = map[string][]any{
	"another run":                  {"run", "another"},
	"another replication":          {"replication", "another"},
	"another run and replication":  {"run", "another", "replication", "another"},
	"a run that is a prefix of it": {"run", "0"},
	"no run":                       {"run", "never told"},
}

// To tell whether the server has forgotten takes more than a script can find out: until somebody says it, nothing is
// done. Of a server without a decision, nothing needs to be known.
func TestCheckAsksBeforeItJudges(t *testing.T) {
	for title, fields := range strangers {
		t.Run(title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				settled(t, c, 0, script.Durable)
				set(t, c, fields...)
				unchanged(t, c, func() {
					if got := check(t, c, noon, another("two", script.NotAsked)); got.Standing != script.StandingAsk {
						t.Errorf("got %+v, want to be asked", got)
					}
				})
				must(t, c.HDel(t.Context(), script.RecordKey, "until"))
				got := check(t, c, noon+minute, another("two", script.NotAsked))
				if got.Standing != script.StandingUnsettled || got.Incarnation != "two" || got.Age != 0 {
					t.Errorf("got %+v, want another incarnation, undecided", got)
				}
			})
		})
	}
}

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

// The longest TTL decides how long a node that forgets has to wait.
func TestRecordedTTLOnlyGrows(t *testing.T) {
	for _, decided := range []bool{true, false} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			if decided {
				settled(t, c, 0, script.NotDurable)
			} else {
				check(t, c, noon, aCheck)
			}
			longest := ttl
			for _, d := range []time.Duration{time.Second, ttl, 100 * 24 * time.Hour, time.Hour, ttl} {
				longest = max(longest, d)
				req := aCheck
				req.TTL = d
				if got := check(t, c, noon, req); got.TTL != longest {
					t.Errorf("got %+v after %v, want the longest, %v", got, d, longest)
				}
				if got := record(t, c)["ttl"]; got != strconv.FormatInt(longest.Milliseconds(), 10) {
					t.Errorf("recorded %q, want %v", got, longest)
				}
			}
		})
	}
}

func TestRecordTellsHowManyNodesTheClientBeforeHad(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		before := 0
		for i, n := range []int{5, 5, 3, 5, 7, 7} {
			req := aCheck
			req.Nodes = n
			if got := check(t, c, noon, req); got.Nodes != before {
				t.Errorf("%d: told %d nodes, want %d", i, got.Nodes, before)
			}
			before = n
		}
	})
}

// What cannot be read is no reason to trust, and nothing is made of it that a later check would.
func TestSpoiltRecordIsNeverSettled(t *testing.T) {
	for _, fields := range [][]any{
		{"until", "soon"}, {"until", ""}, {"ttl", "long"}, {"since", "then"},
		{"until", "soon", "run", "another"}, {"ttl", "long", "run", "another"}, {"until", "soon", "replication", "another"},
	} {
		onBoth(t, func(t *testing.T, c *redis.Client) {
			settled(t, c, 0, script.Durable)
			set(t, c, fields...)
			unchanged(t, c, func() {
				for _, durable := range []script.Durability{script.NotDurable, script.Durable} {
					if got, err := tryCheck(t, c, noon, another("two", durable)); err == nil {
						t.Errorf("%q: got %+v, want an error", fields, got)
					}
				}
			})
		})
	}
	onBoth(t, func(t *testing.T, c *redis.Client) {
		must(t, c.Set(t.Context(), script.RecordKey, "x", 0))
		unchanged(t, c, func() {
			if got, err := tryCheck(t, c, noon, aCheck); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
		})
	})
}
