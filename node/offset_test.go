package node

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redquorum/redquorum/clock"
)

// origin is some instant; in returns the one d later.
var origin = clock.System().Now()

func in(d time.Duration) clock.Instant { return origin.Add(d) }

func TestOffsetIsAnInterval(t *testing.T) {
	const ms = time.Millisecond
	us := origin.Micros()
	var o offset
	if _, known := o.nodeTime(origin); known {
		t.Error("known before the first reading")
	}
	want := func(lo, hi int64) {
		t.Helper()
		// Wider by what the clocks may drift meanwhile, and what is cut off.
		if diff := o.lo - lo; diff > 0 || diff < -300 {
			t.Errorf("the lower end is %d, want %d", o.lo, lo)
		}
		if diff := o.hi - hi; diff < 0 || diff > 300 {
			t.Errorf("the upper end is %d, want %d", o.hi, hi)
		}
	}
	o.learn(us+5_000_000, in(0), in(10*ms)) // 5 s ahead, read within 10 ms
	want(4_990_000, 5_000_000)
	o.learn(us+5_100_000, in(99*ms), in(101*ms)) // narrower
	want(4_999_000, 5_000_000)
	o.learn(us+5_200_000, in(150*ms), in(250*ms)) // wider: only the time that passed counts
	want(4_999_000, 5_000_000)
	o.learn(us+9_000_000, in(300*ms), in(310*ms)) // set: only the newest counts
	want(8_690_000, 8_700_000)
	o.learn(us+1_000_000, in(400*ms), in(410*ms)) // set back
	want(590_000, 600_000)
}

// Replies overtake each other; an old reading must neither sharpen what is known nor replace it.
func TestOffsetFromOvertakenReplies(t *testing.T) {
	const ms = time.Millisecond
	us := origin.Micros()
	var o offset
	o.learn(us+60_000, in(50*ms), in(60*ms))
	lo, hi := o.lo, o.hi
	o.learn(us+30_000, in(0), in(40*ms)) // agrees, and is wider: the uncertainty must not shrink
	if o.lo > lo || o.hi < hi {
		t.Errorf("an older, wider reading turned [%d, %d] into [%d, %d]", lo, hi, o.lo, o.hi)
	}
	o = offset{}
	o.learn(us+9_000_000, in(50*ms), in(60*ms)) // after the clock was set
	lo, hi = o.lo, o.hi
	o.learn(us+20_000, in(10*ms), in(30*ms)) // from before
	if o.lo != lo || o.hi != hi || o.at != in(60*ms) {
		t.Errorf("a reading from before the clock was set turned [%d, %d] into [%d, %d]", lo, hi, o.lo, o.hi)
	}
}

// Whatever the network does to the replies, and as long as both clocks are kept by NTP: the true offset is in the
// interval, and a last moment comes no later on the node than here.
func TestOffsetHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o offset
		now := time.Duration(0)                                 // true time since the origin
		ahead := rapid.Int64Range(-1e15, 1e15).Draw(t, "ahead") // nanoseconds
		ppm := rapid.Int64Range(-900, 900).Draw(t, "ppm")       // how much faster the node's clock is
		node := func(at time.Duration) int64 {                  // its nanoseconds
			return int64(at) + ahead + int64(at)/1_000_000*ppm + origin.Micros()*1000
		}
		type reply struct {
			micros         int64
			sent, received time.Duration
		}
		var late []reply
		take := func(r reply) { o.learn(floor(r.micros), in(r.sent), in(r.received)) }
		for range rapid.IntRange(1, 30).Draw(t, "replies") {
			now += time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "pause"))
			there := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "there"))
			back := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "back"))
			r := reply{node(now + there), now, now + there + back}
			if rapid.Bool().Draw(t, "overtaken") {
				late = append(late, r)
				continue
			}
			now = r.received
			take(r)
			if len(late) > 0 && rapid.Bool().Draw(t, "late") {
				if late[0].received <= now {
					take(late[0])
					late = late[1:]
				}
			}
			if !o.known {
				t.Fatal("nothing learnt")
			}
			truth := node(o.at.Sub(origin)) - (origin.Micros()*1000 + int64(o.at.Sub(origin)))
			if lo, hi := o.lo*1000, o.hi*1000; truth < lo-1000 || truth > hi+1000 {
				t.Fatalf("the node is %d ns ahead, believed between %d and %d", truth, lo, hi)
			}
			last, _ := o.nodeTime(in(r.received))
			if shows := node(o.at.Sub(origin)) + int64(r.received-o.at.Sub(origin)); last*1000 > shows+1000 {
				t.Fatalf("the last moment is %d ns after it should be", last*1000-shows)
			}
		}
	})
}

// floor cuts nanoseconds off to microseconds.
func floor(ns int64) int64 {
	us := ns / 1000
	if ns < 0 && us*1000 != ns {
		us--
	}
	return us
}
