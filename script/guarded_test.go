package script_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// one is the seal of requests to a node whose incarnation "one" was checked.
var one = script.Seal{Incarnation: "one"}

// guardedRequests are those that make a node vote.
var guardedRequests = []script.Request{anAcquire, aRenewal}

// locks are what may be there when such a request comes.
var locks = map[string]func(t *testing.T, c *redis.Client){
	"free":      func(*testing.T, *redis.Client) {},
	"ours":      func(t *testing.T, c *redis.Client) { lock(t, c, us, 1, time.Second) },
	"another's": func(t *testing.T, c *redis.Client) { lock(t, c, them, 1, time.Second) },
	"a string":  func(t *testing.T, c *redis.Client) { must(t, c.Set(t.Context(), name, us, time.Hour)) },
}

// changesNothing sends every request to the node, whatever lock is there.
func changesNothing(t *testing.T, prepare func(t *testing.T, c *redis.Client), seal script.Seal, want script.Status) {
	t.Helper()
	for title, put := range locks {
		t.Run(title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				prepare(t, c)
				put(t, c)
				unchanged(t, c, func() {
					for _, req := range guardedRequests {
						got := sealedAt(t, c, noon, req, seal)
						if got != (script.Reply{Status: want, Now: noon}) {
							t.Errorf("%s: got %+v, want %s", req.Script().Name, got, want)
						}
					}
				})
			})
		})
	}
}

// A node that was flushed, or checked by others after it was started again, is not the one whose vote is wanted, be it
// settled or not.
func TestAnotherIncarnationDoesNotVote(t *testing.T) {
	ready := func(t *testing.T, c *redis.Client) { settled(t, c, 0, script.NotDurable) }
	for title, prepare := range map[string]func(t *testing.T, c *redis.Client){
		"settled":       ready,
		"in quarantine": func(t *testing.T, c *redis.Client) { settled(t, c, time.Hour, script.NotDurable) },
		"undecided":     func(t *testing.T, c *redis.Client) { check(t, c, noon, aCheck) },
		"no record":     func(*testing.T, *redis.Client) {},
	} {
		t.Run(title, func(t *testing.T) {
			for _, other := range []string{"two", "on", "one ", "ONE"} {
				changesNothing(t, prepare, script.Seal{Incarnation: other}, script.Stranger)
			}
		})
	}
	// Late is late, whoever it was meant for.
	changesNothing(t, ready, script.Seal{Incarnation: "two", Last: noon - 1}, script.Expired)
}

func TestUndecidedNodeDoesNotVote(t *testing.T) {
	changesNothing(t, func(t *testing.T, c *redis.Client) { check(t, c, noon, aCheck) }, one, script.Unsettled)
}

func TestNodeInQuarantineGrantsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, time.Minute, script.NotDurable)
		must(t, c.Set(t.Context(), script.FenceKey(name), noon, day))
		unchanged(t, c, func() {
			for late, left := range map[int64]time.Duration{0: time.Minute, 1: time.Minute, minute - 1: time.Millisecond} {
				long := anAcquire
				long.TTL = 24 * time.Hour
				got := sealedAt(t, c, noon+late, long, one)
				if got != (script.Reply{Status: script.Quarantined, Fence: noon, TTL: left, Now: noon + late}) {
					t.Errorf("%d us later: got %+v, want the quarantine, %v yet", late, got, left)
				}
			}
		})
		wantStatus(t, sealedAt(t, c, noon+minute, anAcquire, one), script.Granted)
	})
}

// Whoever waits for a lock wants to know of its holder, not of the node.
func TestLockOnANodeInQuarantineIsHeld(t *testing.T) {
	for _, o := range others {
		t.Run(o.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				settled(t, c, time.Minute, script.NotDurable)
				o.put(t, c)
				unchanged(t, c, func() {
					for _, req := range guardedRequests {
						got := sealedAt(t, c, noon, req, one)
						if got.Status != script.Held || got.Holder != o.holder || got.Count != o.count || !about(got.TTL, o.ttl) {
							t.Errorf("%s: got %+v, want held by %q", req.Script().Name, got, o.holder)
						}
					}
				})
			})
		})
	}
}

// A lease heals on a node in quarantine. What that is worth as a vote is for the holder to say, who alone knows what the
// node had before.
func TestRenewalInQuarantineWorksAndTellsOfIt(t *testing.T) {
	for _, quarantine := range []time.Duration{0, time.Minute} {
		for title, status := range map[string]script.Status{"free": script.Restored, "ours": script.Renewed} {
			t.Run(title+" "+quarantine.String(), func(t *testing.T) {
				onBoth(t, func(t *testing.T, c *redis.Client) {
					settled(t, c, quarantine, script.NotDurable)
					locks[title](t, c)
					got := sealedAt(t, c, noon, aRenewal, one)
					if got.Status != status || got.Quarantine != quarantine || got.Fence != noon {
						t.Errorf("got %+v, want %s in quarantine for %v", got, status, quarantine)
					}
					wantTTL(t, c, name, ttl)
					wantHash(t, c, map[string]string{us: "1"})
					got = sealedAt(t, c, noon+minute, aRenewal, one)
					if got.Status != script.Renewed || got.Quarantine != 0 {
						t.Errorf("got %+v, want no quarantine any more", got)
					}
				})
			})
		}
	}
}

func TestRevokedHolderIsRevokedInQuarantineToo(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		settled(t, c, time.Minute, script.NotDurable)
		must(t, c.Set(t.Context(), script.RevokedKey(name), us, time.Minute))
		unchanged(t, c, func() { wantStatus(t, sealedAt(t, c, noon, aRenewal, one), script.Revoked) })
	})
}

// A node must be able to tell, after it has forgotten, for how long what it had forgotten may live. A renewal may come
// to a node that never heard of the lock, or whose record was made anew since.
func TestEveryGrantLeavesItsTTLOnRecord(t *testing.T) {
	for _, with := range []func(time.Duration) script.Request{
		func(d time.Duration) script.Request { r := anAcquire; r.TTL = d; return r },
		func(d time.Duration) script.Request { r := aRenewal; r.TTL = d; return r },
	} {
		for _, title := range []string{"free", "ours"} {
			t.Run(with(0).Script().Name+" "+title, func(t *testing.T) {
				onBoth(t, func(t *testing.T, c *redis.Client) {
					settled(t, c, 0, script.NotDurable)
					longest := ttl
					for _, d := range []time.Duration{time.Second, time.Hour, time.Minute, 1000 * time.Hour} {
						must(t, c.Del(t.Context(), name))
						locks[title](t, c)
						longest = max(longest, d)
						sealedAt(t, c, noon, with(d), one)
						if got := record(t, c)["ttl"]; got != strconv.FormatInt(longest.Milliseconds(), 10) {
							t.Errorf("recorded %q, want %v", got, longest)
						}
						wantTTL(t, c, name, d)
					}
				})
			})
		}
	}
}

// A client without the guard knows of no records, and leaves none.
func TestWithoutAnIncarnationTheRecordIsNotLookedAt(t *testing.T) {
	for title, prepare := range map[string]func(t *testing.T, c *redis.Client){
		"no record":     func(*testing.T, *redis.Client) {},
		"undecided":     func(t *testing.T, c *redis.Client) { check(t, c, noon, aCheck) },
		"in quarantine": func(t *testing.T, c *redis.Client) { settled(t, c, time.Hour, script.NotDurable) },
		"spoilt":        func(t *testing.T, c *redis.Client) { must(t, c.Set(t.Context(), script.RecordKey, "x", 0)) },
	} {
		t.Run(title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				prepare(t, c)
				before := dump(t, c)[script.RecordKey]
				long := anAcquire
				long.TTL = 24 * time.Hour
				wantStatus(t, sealedAt(t, c, noon, long, script.Seal{}), script.Granted)
				wantStatus(t, sealedAt(t, c, noon, aRenewal, script.Seal{}), script.Renewed)
				must(t, c.Del(t.Context(), name))
				got := sealedAt(t, c, noon, aRenewal, script.Seal{})
				if got.Status != script.Restored || got.Quarantine != 0 {
					t.Errorf("got %+v, want restored", got)
				}
				if after := dump(t, c)[script.RecordKey]; after != before {
					t.Errorf("the record was %q and is %q", before, after)
				}
			})
		})
	}
}
