package quorum

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"
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
}

// busyTurn is how long to stay away for each that was met: a turn, and until one who looks finds the lock free. There is as much
// again to draw from, so that they do not come back together. With mostSpread a crowd that has gone leaves the lock alone no
// longer than its delays do.
const busyTurn = turn + turn/2

var hashSeed = maphash.MakeSeed()

// meet takes in who has the lock.
func (co *company) meet(holder string) {
	client := holder
	if i := strings.LastIndexByte(holder, ':'); i >= 0 {
		client = holder[:i] // what comes behind is of the hold, or of a thread (Redisson)
	}
	co.met[co.next] = uint32(maphash.String(hashSeed, client)) | 1 //nolint:gosec // a part of a hash is one
	co.next = (co.next + 1) % uint8(len(co.met))
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

// turns is how long the others need for a turn each, about, if this process has had one; else 0. It takes that in.
func (ln *line) turns() time.Duration {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	cr := &ln.crowd
	if !cr.handed && cr.again < busyReleases {
		return 0
	}
	cr.handed, cr.again = false, 0
	turns := time.Duration(cr.company.size()) * busyTurn
	return min(turns+ln.c.upTo(turns), mostSpread)
}

// stayAway keeps away from a lock that changes hands too fast to be told.
func (w *waiter) stayAway() error {
	if turns := w.line.turns(); turns > 0 {
		_, over := w.sleep(nil, w.part(turns))
		w.since = w.c.clock.Now() // from now on it is a matter of luck
		return over
	}
	_, over := w.sleep(nil, busyPause+w.c.upTo(3*busyPause))
	return over
}
