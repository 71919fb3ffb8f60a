package quorum

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// Company.
//
// A lock that goes round fast is free at every other look. Were all who want it again and again to look for it all the time,
// somebody would come in between the holds of each after a few of them. That costs more than it seems: two who come at once hold
// each other up for some round trips, and a process that begins is slower than one that is at it. So whoever has had a turn, and
// has to wait, stays away for a turn of each of the others, and then looks until it is lucky. The lock then changes hands about as
// often as if they had their turns one after another. Whoever wants it but once in a while has no turns, and does not stay away:
// it comes before those who do, and with such processes alone the lock is not left unused.
//
// Nobody who does not listen can be counted. But they are met: at a lock that two processes want every look shows the same other
// one, and at one that sixteen want eight looks show six or seven of the fifteen.
type company struct {
	met  [8]uint32 // at the last looks, by a hash of the client; 0 is nobody
	next uint8     // where the next one goes
	last clock.Instant
}

const (
	// busyTurn is how long to stay away for each that was met: a turn, and until one who looks finds the lock free. There is as much
	// again to draw from, so that they do not come back together. With mostSpread a crowd that has gone leaves the lock alone no
	// longer than its delays do.
	busyTurn = turn + turn/2

	// longAgo is when nobody who was met then says anything about the lock now: longer than one turn and one stay.
	longAgo = 2 * mostSpread
)

var hashSeed = maphash.MakeSeed()

// meet takes in who has the lock. Clients are told apart by what comes before the last colon, as those of this library and of
// Redisson are; what comes behind it is of the hold, or of a thread. Whoever has none is one with all who have none: their holders
// may be new each time.
func (co *company) meet(holder string, now clock.Instant) {
	if now.Sub(co.last) > longAgo {
		*co = company{}
	}
	client := holder[:max(0, strings.LastIndexByte(holder, ':'))]
	co.met[co.next] = uint32(maphash.String(hashSeed, client)) | 1 //nolint:gosec // a part of a hash is one
	co.next, co.last = (co.next+1)%uint8(len(co.met)), now
}

// size is how many others were met lately; at least one, who has the lock.
func (co *company) size() int {
	n := 0
	for i, client := range co.met {
		if client != 0 && !slices.Contains(co.met[:i], client) {
			n++
		}
	}
	return max(1, n)
}

// turns is how long the others need at most for a turn each, about, if this process has had one; else 0. It takes that in.
func (ln *line) turns() time.Duration {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	cr := &ln.crowd
	if !cr.handed && cr.again < busyReleases {
		return 0
	}
	cr.handed, cr.again = false, 0
	return min(time.Duration(2*cr.company.size())*busyTurn, mostSpread)
}

// hurry is d, but no more than becomes any of those who stand in line (part): it is the head that stays away for all of them.
func (ln *line) hurry(d time.Duration) time.Duration {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for _, w := range ln.waiters {
		d = w.part(d)
	}
	return d
}

// stayAway keeps away from a lock that changes hands too fast to be told, but not when the TTLs that were seen allow a quorum.
func (w *waiter) stayAway(due clock.Instant) error {
	pause := busyPause + w.c.upTo(3*busyPause)
	turns := w.line.turns()
	if turns > 0 {
		turns = w.line.hurry(turns)
		pause = turns - w.c.upTo(turns/2)
	}
	if left := due.Sub(w.c.clock.Now()); left > 0 {
		pause = min(pause, left)
	}
	if over := w.pauses(pause); over != nil {
		return over
	}
	if turns > 0 {
		w.since = w.c.clock.Now() // from now on it is a matter of luck
	}
	return nil
}

// pauses lets d pass in steps, since somebody who has but a moment may come to stand behind.
func (w *waiter) pauses(d time.Duration) error {
	for d > 0 {
		step := min(d, 4*busyPause)
		if _, over := w.sleep(nil, step); over != nil {
			return over
		}
		if d -= step; d > 0 {
			d = w.line.hurry(d)
		}
	}
	return nil
}
