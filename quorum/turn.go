package quorum

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// Turns.
//
// A process that wants a lock again and again has it for a turn, since to go on costs less than to change, and then lets others
// have a chance: it draws a moment as they do (crowd.go).
//
// Who waits for a lock that goes round fast is told of the end of each turn, and not of each release: a hundred times less. It
// is announced on a channel of its own, and on one node, the same for all (ear), by the process whose turn is over, once the lock is
// free. The answer tells how many have heard it. If nobody has, the next turn begins at once, without a chance for anybody.
//
// The announcement carries the last token that was granted in the turn. One that goes round fast is free at every other look;
// but whoever looks after its delay, and finds it free and no later token, knows that nobody was quicker. With a minus sign it is of a
// process that has not come back for the lock for a while, and may do so at any moment: it comes too early then to be relied on, and
// is repeated if the process does.
//
// All that is a hint: a process that announces nothing, since it was killed, or may not publish, or has never heard of turns,
// costs the others looks (crowd.go), and makes them listen to each release.

const (
	// turn is how long a process may have the lock again and again while others wait.
	turn = 50 * time.Millisecond
	// hastyTurn is the same where the lock goes round fast, and whoever waits is told of the end of the turn only. Of 50ms a tenth
	// would be spent on the change: until the next one has come, and its caches are warm.
	hastyTurn = 2 * turn
	// turnHolds is how many holds a turn has at least that is announced: that takes a round trip, and a hold two.
	turnHolds = 20
	// announceTrips bounds how many round trips an announcement takes: whoever goes on shall not wait for a node that hangs.
	announceTrips = 8
	// pardon is how soon a process comes back that wants the lock again.
	pardon = time.Millisecond

	// A waiter attends to the ends of turns if no more than one other does; after attendPatience, if no more than two do, and so on;
	// after busyEars-1 times that everybody does. Few are enough for the lock not to be left alone, and each looks after each turn.
	attendPatience = busyPatience
)

// ear is the node on which the ends of turns are announced: one that answers, and the same for all clients that call the nodes by
// the same names. This is rendezvous hashing (Thaler, Ravishankar: "Using name-based mappings to increase hit rates", 1998), so
// that it is another node for each lock, and one that fails moves only its own.
func (ln *line) ear() int {
	best, ear := uint64(0), 0
	for i, n := range ln.c.nodes {
		if n.silent.Load() || n.unseen.Load() {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(n.name + "\x00" + ln.key))
		if v := h.Sum64(); v >= best {
			best, ear = v, i
		}
	}
	return ear
}

// won takes in that this process has the lock now, with a wait or without.
func (ln *line) won(h *hold, waited bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.ours = h
	// Where nobody was ever in its way there is no run to speak of, and the line is not kept for it.
	if waited || ln.crowd.run.IsZero() && ln.crowd.rival != "" {
		ln.crowd.run, ln.crowd.holds = ln.c.clock.Now(), 0
	}
	if !ln.crowd.run.IsZero() {
		ln.crowd.holds++
	}
	ln.crowd.polite, ln.crowd.handed, ln.crowd.parted, ln.crowd.foreign = false, false, 0, false
	// Whoever comes in between need not know that the lock goes round fast, and announces nothing: it is listened to at first.
	ln.crowd.known, ln.crowd.busy = ln.crowd.known || ln.crowd.busy, false
}

// tooFast tells whether a lock that is had so often changes hands too fast to be told. It is called with ln.mu held.
func (ln *line) tooFast(each time.Duration) bool {
	return each < busyTrips*ln.c.roundTrip() || each < busyInterval && ln.crowd.others >= busyOthers
}

// hasty tells whether the run of this process shows that. It is called with ln.mu held.
func (ln *line) hasty() bool {
	cr := &ln.crowd
	return !cr.run.IsZero() && cr.holds >= turnHolds && ln.tooFast(ln.c.clock.Now().Sub(cr.run)/time.Duration(cr.holds))
}

// courtesy is how long to stay away after this process gave the lock back to others who waited; 0 if nobody did, as far as is
// known, or if its turn is not over. The end of a turn is to be announced where waiters may not be told of releases; its token is 0
// else.
func (ln *line) courtesy() (d time.Duration, token int64) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	cr := &ln.crowd
	ran := ln.c.clock.Now().Sub(cr.run)
	hasty := ln.hasty()
	switch {
	case cr.parted > 0:
		token = cr.parted
	case !cr.handed && ran < turn, !cr.polite && (!hasty || ran < hastyTurn):
		return 0, 0
	case hasty && ran >= turn:
		token = ln.ours.fence
	}
	cr.busy = cr.busy || token > 0
	if cr.polite {
		d = max(1, ln.c.upTo(ln.c.spread(cr.others, 0)))
	}
	cr.polite, cr.handed, cr.parted, cr.run = false, false, 0, clock.Instant{}
	return d, token
}

// interrupted takes in that somebody else has the lock in the middle of a run of this process. It is called with ln.mu held.
func (ln *line) interrupted() {
	cr := &ln.crowd
	if !cr.run.IsZero() && cr.known && !cr.polite {
		cr.busy = true // nobody listened to its release, so whoever came knows, too
	}
	cr.run, cr.parted = clock.Instant{}, 0
}

// letOthers stays away for a while if others waited when this process gave the lock back, and if one of them has it then,
// until that one is done.
func (w *waiter) letOthers() error {
	d, token := w.line.courtesy()
	if token > 0 {
		d = max(d, w.announce(token))
	}
	if d == 0 {
		return nil
	}
	w.waits(0)
	if _, over := w.sleep(nil, w.part(d)); over != nil {
		return over
	}
	if token > 0 && w.untaken(token) || token == 0 && w.free(false, false) {
		return nil
	}
	w.line.awake() // it may have heard itself
	return w.stand(&verdict{}, nil)
}

// announce tells those who attend that the turn of this process is over, and returns how long to stay away; 0 if nobody attends.
func (w *waiter) announce(token int64) time.Duration {
	ln := w.line
	ear := ln.ear()
	patience := min(w.part(max(leastSlot, announceTrips*w.c.roundTrip())), w.c.cfg.NodeTimeout)
	others, err := ask(w, ear, patience, func(ctx context.Context, n *node.Node) (int, error) {
		return n.Publish(ctx, script.TurnChannel(ln.key), strconv.FormatInt(token, 10))
	})
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.attends(ear) {
		others--
	}
	if others <= 0 {
		ln.crowd.run, ln.crowd.holds = ln.c.clock.Now(), 0
		if err == nil { // else it may have been heard
			ln.crowd.known, ln.crowd.busy = false, false
		}
		return 0
	}
	return max(1, ln.c.upTo(ln.c.spread(others, 0)))
}

// partLater has the end of a turn announced that is over since nobody of this process comes back for a lock that goes round
// fast. It is called with all.mu held.
func (ln *line) partLater(token int64) {
	ln.mu.Lock()
	cr := &ln.crowd
	known := !cr.foreign && (cr.known || cr.busy || ln.hasty())
	ln.mu.Unlock()
	ln.leaving = 0
	if !known || ln.all.closed {
		return
	}
	ln.leaving = token
	switch {
	case ln.users > 0: // leave decides anew
	case ln.parting == nil:
		ln.parting = time.AfterFunc(pardon, ln.part)
	default:
		ln.parting.Reset(pardon)
	}
}

// part announces it.
func (ln *line) part() {
	ln.all.mu.Lock()
	defer ln.all.mu.Unlock()
	token := ln.leaving
	if token == 0 || ln.users > 0 || ln.held() || ln.c.enter() != nil {
		return
	}
	ln.leaving = 0
	ln.mu.Lock()
	ln.crowd.parted, ln.crowd.run = token, clock.Instant{}
	ln.mu.Unlock()
	ln.c.background.do(func() {
		defer ln.c.leave()
		ctx, cancel := context.WithTimeout(context.Background(), ln.c.cfg.NodeTimeout)
		defer cancel()
		heard, err := ln.c.nodes[ln.ear()].Publish(ctx, script.TurnChannel(ln.key), strconv.FormatInt(-token, 10))
		if heard == 0 && err == nil {
			ln.mu.Lock()
			defer ln.mu.Unlock()
			if ln.crowd.parted == token {
				ln.crowd.known, ln.crowd.busy, ln.crowd.parted = false, false, 0
			}
		}
	})
}

// untaken takes a look after the end of a turn, and tells whether nobody has had the lock since, as far as is known.
func (w *waiter) untaken(token int64) bool {
	s := w.look(w.line.ear(), true)
	if s.err != nil {
		return true
	}
	w.line.sees(s)
	// A later token may also be that of a try which failed, or of a counter that was ahead.
	untaken := s.Holder == "" && (s.Fence <= token || w.still(s))
	if !untaken {
		w.late++
	}
	return untaken
}

// still tells whether nobody had the lock since a look that found it free: one that goes round fast is free at every other.
func (w *waiter) still(s sight) bool {
	if _, over := w.sleep(nil, max(leastSlot, slotTrips*w.c.roundTrip())); over != nil {
		return true // to find that out
	}
	again := w.look(s.node, true)
	return again.err != nil || again.Holder == "" && again.Fence == s.Fence
}

// attend waits until the end of a turn is announced, or for a pause, and tells whether it is worth trying then.
func (w *waiter) attend() (come bool, over error) {
	ln := w.line
	ln.hushReleases()
	pause := busyPause + w.c.upTo(3*busyPause)
	if ln.mayAttend(w.c.clock.Now().Sub(w.since)) {
		ln.follow()
	} else {
		ln.hushTurns()
		pause *= 2 // others will come sooner
	}
	woken, over := w.sleep(ln.wake, pause)
	if over != nil {
		return false, over
	}
	token := ln.turnEnded()
	if !woken || token == 0 {
		return w.free(false, false), nil
	}
	_, over = w.sleep(nil, w.c.upTo(w.c.spread(ln.rivals(), w.late)))
	return over == nil && w.untaken(token), over
}

// mayAttend tells whether a waiter that was out of luck for so long attends to the ends of turns.
func (ln *line) mayAttend(waited time.Duration) bool {
	ear := ln.ear()
	ln.mu.Lock()
	defer ln.mu.Unlock()
	patience := int(waited / attendPatience)
	if ln.deafToEar = ln.deafToEar && ln.turnsEar == ear; ln.deafToEar {
		return false
	}
	return ln.turns != nil || min(ln.crowd.attending, busyEars) <= patience+1
}

// turnEnded returns the last token of a turn whose end was announced, once; 0 if none was.
func (ln *line) turnEnded() (token int64) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	token, ln.ended = ln.ended, 0
	return token
}

// follow has the line attend to the ends of turns.
func (ln *line) follow() {
	ear := ln.ear()
	ln.mu.Lock()
	if ln.turns != nil && ln.turnsEar == ear {
		ln.mu.Unlock()
		return
	}
	ln.mu.Unlock()
	ln.hushTurns()
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.equip()
	ln.turnsEar = ear
	if ln.crowd.told.IsZero() {
		ln.crowd.told = ln.c.clock.Now()
	}
	ln.turns = ln.c.nodes[ear].Listen(script.TurnChannel(ln.key), ln.c.cfg.NodeTimeout, ln.hearTurn)
}

// followOn has a line that attends do so on another node if the one has fallen silent.
func (ln *line) followOn() {
	ln.mu.Lock()
	attends := ln.turns != nil
	ln.mu.Unlock()
	if attends {
		ln.follow()
	}
}

// hushTurns has the line not attend any more.
func (ln *line) hushTurns() {
	ln.mu.Lock()
	stop := ln.turns
	ln.turns, ln.heardEar, ln.ended = nil, false, 0
	ln.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// attends tells whether the line attends on a node, and is counted there. It is called with ln.mu held.
func (ln *line) attends(i int) bool { return ln.turns != nil && ln.heardEar && ln.turnsEar == i }

// rivals is how many others attend.
func (ln *line) rivals() int {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.crowd.attending
}

// hearTurn takes in the end of a turn.
func (ln *line) hearTurn(e node.Event) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	switch token, err := strconv.ParseInt(e.Payload, 10, 64); {
	case e.Err != nil:
		ln.deafToEar = true
	case e.Subscribed:
		ln.heardEar = true
	case err == nil && token > 0:
		ln.crowd.told = ln.c.clock.Now()
		ln.ended = token
		ln.signal()
	case err == nil && token < 0: // it has gone, and may come back before anybody else
		ln.ended = -token
		ln.signal()
	}
}
