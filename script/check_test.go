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
			set(t, c, "ttl", (2 * time.Minute).Milliseconds())
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

// A quarantine that began while the server's clock was ten years ahead lasts a full one from the moment at which the clock is
// right again, and not ten years.
func TestQuarantineThatBeganWhileTheClockWasAheadIsShortened(t *testing.T) {
	const year = int64(365 * 24 * 3600 * 1_000_000)
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, ttl, script.NotDurable)
		set(t, c, "since", strconv.FormatInt(noon+10*year, 10), "until", strconv.FormatInt(noon+10*year+30_000_000, 10))
		got := check(t, c, noon, aCheck)
		if got.Standing != script.StandingSettled || got.Incarnation != "one" || got.Quarantine != ttl || got.Age != 0 {
			t.Errorf("got %+v, want a quarantine of %v from now", got, ttl)
		}
		if by := 10 * 365 * 24 * time.Hour; got.Shortened != by {
			t.Errorf("shortened by %v, want %v", got.Shortened, by)
		}
		unchanged(t, c, func() { // it is not begun anew by every check
			if got := check(t, c, noon+minute/6, aCheck); got.Quarantine != ttl-10*time.Second || got.Shortened != 0 {
				t.Errorf("10 s later: got %+v", got)
			}
		})
		// Nor does it hide that somebody knows of a longer TTL.
		longer := aCheck
		longer.TTL = 2 * ttl
		if got := check(t, c, noon+minute/6, longer); got.Quarantine != 2*ttl-10*time.Second || got.Shortened != 0 {
			t.Errorf("a longer TTL: got %+v", got)
		}
	})
}

// Where sentinels say which server the node is, a full quarantine is longer.
func TestQuarantineBehindSentinelIsNotShortened(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, ttl, script.NotDurable)
		set(t, c, "until", strconv.FormatInt(noon+33_000_000, 10))
		behind := aCheck
		behind.Lingers = 3 * time.Second
		if got := check(t, c, noon, behind); got.Quarantine != ttl+3*time.Second || got.Shortened != 0 {
			t.Errorf("got %+v, want all of it", got)
		}
	})
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
