package quorum

import (
	"cmp"
	"context"
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
//     each time, so the longest waits come first, as a rule. Who has no rival comes at once.
//   - Who comes after a delay looks before it tries. A look is one plain read on one node: whoever finds somebody else there
//     has cost a fifth of a message a node, and no script.
//   - Who has given the lock back, learns from the release that others wait for it, and has had it again and again for a
//     turn, or handed it on within the process, does not take it once more before they had a chance: it draws a moment as
//     they do. A process that nobody waits for goes on at full speed.
//   - Where a lock changes hands every few milliseconds, the messages about it cost more than the lock: one for each node,
//     release and process. Then a waiter stops listening, and looks now and then, until it finds the same holder twice or
//     its patience is over; of those who listen again the holder hears. If it has had a turn it leaves the others theirs
//     before (company.go).
//
// This is carrier sense with a contention window, as in Wi-Fi (IEEE 802.11, distributed coordination function), with the
// number of stations known. Between processes there is no order, but nobody starves: see TestCrowd.
type crowd struct {
	others int           // who wait for the name elsewhere, when they were last counted
	rival  string        // who had the lock when we looked last
	polite bool          // others waited when this process gave it back
	run    clock.Instant // when this process began to have it again and again; zero if it does not
	handed bool          // since then it went from one to the next within this process
	again  int           // how often this process has had it again right away

	company   company       // who had the lock when we looked lately
	busy      bool          // the lock changes hands too fast to be told
	listeners int           // who listened elsewhere when we looked last
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

	// turn is how long a process may have the lock again and again while others wait.
	turn = 50 * time.Millisecond

	// Too fast to be told is a lock whose releases are less than busyTrips round trips apart, over busyReleases of them; or,
	// where busyOthers others wait, less than busyInterval. Looks are then busyPause apart, and up to four times as much, and
	// whoever was out of luck with them for busyPatience listens all the same: then the holder hears of it. But only if no more
	// than one other does, who may be waiting in the holder's process; after twice the time, if no more than two do, and so on:
	// one is enough to tell the holder, and each costs it a message for each node and release. After busyEars times that
	// everybody does: not all who listen need be waiting.
	busyTrips    = 10
	busyOthers   = 3
	busyInterval = 20 * time.Millisecond
	busyReleases = 4
	busyPause    = 50 * time.Millisecond
	busyPatience = 500 * time.Millisecond
	busyEars     = 4
)

// heard takes in an announcement of one of n nodes.
func (cr *crowd) heard(n int, now clock.Instant, roundTrip time.Duration) {
	if cr.releases == 0 {
		cr.since = now
	}
	if cr.releases++; cr.releases > busyReleases*n {
		each := now.Sub(cr.since) / busyReleases
		cr.busy = each < busyTrips*roundTrip || each < busyInterval && cr.others >= busyOthers
		cr.releases = 0
	}
}

// seen takes in who has the lock now, and tells whether it was somebody else before.
func (cr *crowd) seen(holder string, now clock.Instant) (moved bool) {
	moved = holder != cr.rival
	cr.company.meet(holder, now)
	cr.rival, cr.busy = holder, cr.busy && moved
	return moved
}

// spread is the time of which those who wait draw a moment after a release, if they were late so often. It is called with
// ln.mu held.
func (ln *line) spread(late int) time.Duration {
	trips := slotTrips + slotTripsMore*math.Log(float64(ln.crowd.others+1))
	slot := max(leastSlot, time.Duration(trips*float64(ln.c.roundTrip())))
	return min(time.Duration(max(1, ln.crowd.others+1-late))*slot, mostSpread)
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

// crowded tells whether the lock changes hands too fast to listen, for who has waited so long.
func (ln *line) crowded(waited time.Duration) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	patience := int(waited / busyPatience)
	return ln.crowd.busy && (patience == 0 || min(ln.crowd.listeners, busyEars) > patience)
}

// delay is how long to stay away after a wake.
func (w *waiter) delay() time.Duration {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	return w.c.upTo(w.line.spread(w.late))
}

// courtesy is how long to stay away after this process gave the lock back to others who waited; 0 if nobody did.
func (ln *line) courtesy() time.Duration {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if !ln.crowd.polite || !ln.crowd.handed && ln.c.clock.Now().Sub(ln.crowd.run) < turn {
		return 0
	}
	ln.crowd.polite, ln.crowd.handed, ln.crowd.run = false, false, clock.Instant{}
	return ln.c.upTo(ln.spread(0))
}

// won takes in that this process has the lock now, with a wait or without.
func (ln *line) won(h *hold, waited bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if waited || ln.crowd.rival == "" || ln.ours == nil || h.began.Sub(ln.ours.began) >= busyTrips*ln.c.roundTrip() {
		ln.crowd.again = 0
	} else {
		ln.crowd.again++
	}
	ln.ours = h
	// Where nobody was ever in its way there is no run to speak of, and the line is not kept for it.
	if waited || ln.crowd.run.IsZero() && ln.crowd.rival != "" {
		ln.crowd.run = ln.c.clock.Now()
	}
	ln.crowd.polite, ln.crowd.handed = false, false
}

// found takes in the votes of an attempt that failed.
func (ln *line) found(votes []Vote) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if holder := strongest(votes); holder != "" {
		ln.crowd.seen(holder, ln.c.clock.Now())
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
	node      int
	holder    string
	listeners int
	err       error
}

// lookAt draws a node to look at after a wake, and to count: one that answers, and where who looks is known to be counted, too, if
// there is one. Of nodes that refuse messages nobody tells that the lock has become free; they have their turns (lookNext).
func (w *waiter) lookAt() int {
	c := w.c
	first := int(c.random() * float64(len(c.nodes)))
	answers := -1
	for k := range c.nodes {
		i := (first + k) % len(c.nodes)
		switch {
		case c.nodes[i].silent.Load():
		case w.line.hears(i):
			return i
		case answers < 0:
			answers = i
		}
	}
	return max(answers, 0)
}

// lookNext is the node to look at where no wake has told anything: each has its turn, since one alone may have the key of somebody
// who died, or be the last to know. One that was silent is asked, too, or nobody would learn that it answers again; but another one
// is waited for.
func (w *waiter) lookNext() int {
	nodes := w.c.nodes
	if w.looked++; w.looked == 0 {
		w.looked = int(w.c.random() * float64(len(nodes)))
	}
	for range nodes {
		w.looked %= len(nodes)
		if !nodes[w.looked].silent.Load() {
			return w.looked
		}
		w.ask(w.looked)
		w.looked++
	}
	w.looked %= len(nodes)
	return w.looked
}

// ask asks node i who has the lock there.
func (w *waiter) ask(i int) <-chan sight {
	c := w.c
	seen := make(chan sight, 1)
	c.background.do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
		defer cancel()
		s := sight{node: i}
		s.holder, s.listeners, s.err = c.nodes[i].Look(ctx, w.line.key)
		if s.err == nil {
			c.nodes[i].silent.Store(false)
		}
		seen <- s
	})
	return seen
}

// look looks at node i, for so long at most. It does not outlast the wait.
func (w *waiter) look(i int, limit time.Duration) sight {
	seen := w.ask(i)
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case s := <-seen:
		return s
	case <-late.C:
		return sight{node: i, err: node.ErrTimeout}
	case <-w.ctx.Done():
		return sight{node: i, err: w.ctx.Err()}
	case <-w.c.closing:
		return sight{node: i, err: ErrClosed}
	case <-w.expired:
		return sight{node: i, err: ErrNotAcquired}
	}
}

// A lookout is how a waiter looks.
type lookout struct {
	woken   bool // after a wake, and its delay
	count   bool // who else waits
	hurried bool // the lock changes hands: what it sees late is of no use
}

// lookPatience is how long a look in a hurry may take in any case. A node that has begun to hang is not to keep the lock from who looks
// just there; one that is only slow to be woken is not to bring a script. Who is in no hurry waits for the node's timeout: of ten thousand
// that look after an outage many are late.
const lookPatience = 20 * time.Millisecond

// limit is how long a look at node i may take.
func (w *waiter) limit(i int, hurried bool) time.Duration {
	timeout := w.c.cfg.NodeTimeout
	if !hurried {
		return timeout
	}
	return min(max(lookPatience, w.c.nodes[i].patience(timeout)), timeout)
}

// free takes a look and tells whether it is worth trying: nobody has the lock there, or nobody knows, or a wake has changed
// nothing, as on a node where somebody who died has left a key.
//
// Whoever came first after a wake may be gone again, and the node that was looked at be the last to tell. So it goes on to look where
// a release was announced since, while that is a quorum.
func (w *waiter) free(l lookout) bool {
	var i int
	if l.count {
		i = w.lookAt()
	} else {
		i = w.lookNext()
	}
	for first := true; ; first = false {
		if l.woken {
			w.line.looking(i)
		}
		s := w.look(i, w.limit(i, l.hurried))
		if s.err != nil {
			return true
		}
		worth, next := w.sees(s, l.woken, first)
		if next < 0 {
			return worth
		}
		i = next
	}
}

// sees takes in what a look showed, and tells whether it is worth trying, or else where to look next; -1 for nowhere.
func (w *waiter) sees(s sight, woken, first bool) (worth bool, next int) {
	ln := w.line
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.subscribed && ln.confirmed[s.node] {
		s.listeners-- // this process
	}
	ln.crowd.listeners = max(0, s.listeners)
	if ln.subscribed {
		ln.crowd.others = ln.crowd.listeners
	}
	if s.holder == "" {
		return true, -1
	}
	if first {
		clear(ln.owing)
		if moved := ln.crowd.seen(s.holder, ln.c.clock.Now()) && !ln.leftover(s); !woken || !moved {
			return woken, -1
		}
		w.late++
	}
	return false, ln.unseen()
}

// leftover tells whether a node shows what it showed at the last attempt, and somebody else had the lock then. It is called with
// ln.mu held.
func (ln *line) leftover(s sight) bool {
	return ln.votes != nil && ln.votes[s.node].Holder == s.holder && strongest(ln.votes) != s.holder
}
