package quorum

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
)

// Crowds.
//
// A release wakes every process that waits for the name. Were all of them to try at once, each would get some of the nodes
// and none a quorum, and they would spend more on taking that back than on the lock itself. So:
//
//   - Those who wait know how many they are: the lock's channel has so many subscribers, and a node counts them. After a
//     wake each comes at a random moment of a time that has a slot for each of them; who was late before has a slot less
//     each time, and at last a part of one, so the longest waits come first, as a rule. Who has no rival comes at once.
//   - Who comes after a delay looks before it tries. A look is one plain read on one node: whoever finds somebody else there
//     has cost a fifth of a message a node, and no script.
//   - Who has given the lock back, learns from the release that others wait for it, and has had it again and again for a
//     turn, or handed it on within the process, does not take it once more before they had a chance: it draws a moment as
//     they do. A process that nobody waits for goes on at full speed.
//   - Where a lock changes hands every few milliseconds, the messages about it cost more than the lock: one for each node,
//     release and process. Then a waiter stops listening, attends to the ends of turns instead (turn.go), and looks now and then,
//     until it finds the same holder twice or its patience is over; of those who listen again the holder hears.
//
// This is carrier sense with a contention window, as in Wi-Fi (IEEE 802.11, distributed coordination function), with the
// number of stations known. Between processes there is no order, but nobody starves: see TestCrowd.
type crowd struct {
	others  int           // who wait for the name elsewhere, when they were last counted
	rival   string        // who had the lock when we looked last
	polite  bool          // others waited when this process gave it back
	run     clock.Instant // when this process began to have it again and again; zero if it does not
	holds   int           // how often it has had it since
	handed  bool          // since then it went from one to the next within this process
	foreign bool          // somebody else has had it since this process had
	parted  int64         // the last token of a turn that ended since nobody of this process came back for a while; 0 if none did
	known   bool          // this process waited for it when it went round too fast to be told

	busy      bool          // the lock changes hands too fast to be told
	listeners int           // who listened elsewhere when we looked last
	attending int           // who attended elsewhere to the ends of turns then
	told      clock.Instant // when the end of one was announced
	releases  int           // announcements of all nodes, since
	since     clock.Instant // when they began to be counted
}

const (
	// A slot is slotTrips round trips, and slotTripsMore for each e-fold of the crowd. Two who come less than one apart both
	// try; with n who wait, 1, 2 … n slots each, the first comes after a slot/(1 + 1/2 + … + 1/n), and 1 + … + 1/n ≈ ln n + 0.6.
	// So the lock is left alone for some five round trips, and every fourth time two of them meet. That holds for a hundred
	// processes; of a thousand that wait for one lock more meet, since mostSpread is not enough for them.
	slotTrips, slotTripsMore = 3, 5
	// leastSlot is what a machine takes to wake a process, however fast its network is.
	leastSlot = 500 * time.Microsecond
	// mostSpread bounds how long a lock may be left alone by the last of a crowd that has gone.
	mostSpread = time.Second

	// Too fast to be told is a lock whose releases are less than busyTrips round trips apart, over busyReleases of them; or,
	// where busyOthers others wait, less than busyInterval. Looks are then busyPause apart, and up to four times as much, and
	// whoever was told of no end of a turn for busyPatience listens all the same: then the holder hears of it. But only if no more
	// than one other does, who may be waiting in the holder's process; after twice the time, if no more than two do, and so on: one
	// is enough to tell the holder, and each costs it a message for each node and release. After busyEars times that everybody
	// does: not all who listen need be waiting.
	busyTrips    = 10
	busyOthers   = 3
	busyInterval = 20 * time.Millisecond
	busyReleases = 4
	busyPause    = 50 * time.Millisecond
	busyPatience = 500 * time.Millisecond
	busyEars     = 4
)

// heardRelease takes in an announcement of a release. It is called with ln.mu held.
func (ln *line) heardRelease() {
	cr, now := &ln.crowd, ln.c.clock.Now()
	if cr.releases == 0 {
		cr.since = now
	}
	if cr.releases++; cr.releases > busyReleases*len(ln.c.nodes) {
		cr.busy = ln.tooFast(now.Sub(cr.since) / busyReleases)
		cr.releases = 0
	}
}

// seen takes in who has the lock now, and tells whether it was somebody else before.
func (cr *crowd) seen(holder string) (moved bool) {
	moved = holder != cr.rival
	cr.rival, cr.busy, cr.foreign = holder, cr.busy && moved, true
	return moved
}

// spread is the time of which those who wait draw a moment, if there are so many others and they were late so often.
func (c *Coordinator) spread(others, late int) time.Duration {
	trips := slotTrips + slotTripsMore*math.Log(float64(others+1))
	slot := max(leastSlot, time.Duration(trips*float64(c.roundTrip())))
	n := others + 1
	if late >= n {
		return min(slot*time.Duration(n)/time.Duration(late+1), mostSpread)
	}
	return min(time.Duration(n-late)*slot, mostSpread)
}

// roundTrip is how long a quorum of nodes takes to answer, as far as is known.
func (c *Coordinator) roundTrip() time.Duration {
	took := make([]time.Duration, 0, 9)
	for _, n := range c.nodes {
		took = append(took, time.Duration(n.typical.Load()))
	}
	slices.SortFunc(took, cmp.Compare)
	return took[c.need-1]
}

// crowded tells whether the lock changes hands too fast to listen, for who waits since then.
func (ln *line) crowded(since clock.Instant) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if since.Before(ln.crowd.told) {
		since = ln.crowd.told
	}
	patience := int(ln.c.clock.Now().Sub(since) / busyPatience)
	return ln.crowd.busy && (ln.turns == nil && !ln.deafToEar || patience == 0 || min(ln.crowd.listeners, busyEars) > patience)
}

// delay is how long to stay away after a wake.
func (w *waiter) delay() time.Duration {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	return w.c.upTo(w.c.spread(w.line.crowd.others, w.late))
}

// found takes in the votes of an attempt that failed.
func (ln *line) found(votes []Vote) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if holder := strongest(votes); holder != "" {
		ln.crowd.seen(holder)
		ln.interrupted()
	}
}

// strongest is who has the lock on most nodes.
func strongest(votes []Vote) (holder string) {
	nodes := map[string]int{}
	for _, v := range votes {
		if v.Outcome == Held && v.Holder != "" {
			if nodes[v.Holder]++; holder == "" || nodes[v.Holder] > nodes[holder] {
				holder = v.Holder
			}
		}
	}
	return holder
}

// A sight is what a look at one node showed: who has the lock there, and how many listen.
type sight struct {
	node.Sight
	node int
	err  error
}

// lookAt draws a node to look at: one that answers. To count, one where who looks is known to be counted, too, if there is one;
// but not each time, since of those which refuse messages nobody else would tell that the lock has become free.
func (w *waiter) lookAt(count bool) int {
	c := w.c
	if w.line.busy() {
		return w.line.ear() // where those who attend are counted
	}
	first := int(c.random() * float64(len(c.nodes)))
	answers := -1
	for k := range c.nodes {
		i := (first + k) % len(c.nodes)
		switch {
		case c.nodes[i].silent.Load():
		case !count || w.line.hears(i):
			return i
		case answers < 0:
			answers = i
		}
	}
	return max(answers, 0)
}

// look looks at a node; at the token that was granted last, too, if it shall.
func (w *waiter) look(i int, fence bool) sight {
	s, err := ask(w, i, w.c.cfg.NodeTimeout, func(ctx context.Context, n *node.Node) (node.Sight, error) {
		return n.Look(ctx, w.line.key, fence)
	})
	return sight{Sight: s, node: i, err: err}
}

// ask asks a node what decides nothing, and waits for so long. It does not outlast the wait.
func ask[T any](w *waiter, i int, patience time.Duration, question func(ctx context.Context, n *node.Node) (T, error)) (answer T, err error) {
	c := w.c
	type outcome struct {
		answer T
		err    error
	}
	told := make(chan outcome, 1)
	c.background.do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var o outcome
		o.answer, o.err = question(ctx, c.nodes[i].Node)
		switch hasty := patience < c.cfg.NodeTimeout && errors.Is(o.err, node.ErrTimeout); {
		case o.err == nil:
			c.nodes[i].unseen.Store(false)
		case !hasty && !node.Refused(o.err): // that would say nothing about the node
			c.nodes[i].unseen.Store(true)
		}
		told <- o
	})
	select {
	case o := <-told:
		return o.answer, o.err
	case <-w.ctx.Done():
		return answer, w.ctx.Err()
	case <-c.closing:
		return answer, ErrClosed
	}
}

// free takes a look and tells whether it is worth trying: nobody has the lock there, or nobody knows, or a wake has changed
// nothing, as on a node where somebody who died has left a key.
func (w *waiter) free(woken, count bool) bool {
	fence := w.line.busy()
	s := w.look(w.lookAt(count), fence)
	if s.err != nil {
		return true
	}
	moved := w.line.sees(s)
	switch {
	case s.Holder == "":
		return woken || !fence || w.still(s)
	case woken && moved:
		w.late++
	}
	return woken && !moved
}

// taken tells whether somebody has the lock on two nodes: on one it may be a remnant of a try that failed. Who it is may change
// from one look to the next.
func (w *waiter) taken() bool {
	i := w.lookAt(false)
	if w.c.need == 1 {
		return w.look(i, false).Holder != ""
	}
	for _, k := range [...]int{i, (i + 1) % len(w.c.nodes)} {
		if s := w.look(k, false); s.err != nil || s.Holder == "" {
			return false
		}
	}
	return true
}

// sees takes in what a look showed, and tells whether somebody else has the lock than before.
func (ln *line) sees(s sight) (moved bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	cr := &ln.crowd
	if ln.subscribed && ln.confirmed[s.node] {
		s.Listeners-- // this process
	}
	if ln.attends(s.node) {
		s.Attending-- // this process
	}
	cr.listeners, cr.attending = max(0, s.Listeners), max(0, s.Attending)
	if ln.subscribed {
		cr.others = cr.listeners
	}
	if s.Holder != "" {
		moved = cr.seen(s.Holder)
	}
	return moved
}

// busy tells whether the lock changes hands too fast to be told.
func (ln *line) busy() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.crowd.busy
}
