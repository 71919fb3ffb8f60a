package quorum

import (
	"context"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/script"
)

// How long a quarantine has to last, all nodes together know. One of them may have granted a longer TTL after this client
// last looked at its record, and a node that comes back from an old snapshot knows only what was in use when that was made.
// So while a node is in quarantine, the others are asked for the longest TTL they know of, and it is told.

// A quarantine is what is known of a node's.
type quarantine struct {
	until       clock.Instant // its end; zero if the node is in none
	ttl         time.Duration // the longest TTL that the node knows of; 0 while it is being told of a longer one
	incarnation string        // about which the others were asked,
	askedUntil  clock.Instant // and when the quarantine was to end then
	checking    bool          // since it seems to be too long
}

// longestTTL is the longest TTL that any lease may have, by what is known here: those that were granted, and those of attempts
// under way, which may be granted yet.
func (g *guard) longestTTL() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	longest := g.longest
	for ttl := range g.attempts {
		longest = max(longest, ttl)
	}
	return longest
}

// granted is the longest TTL that was granted. That is what nodes are told: they keep it for good, and the TTL of an attempt
// that fails would lengthen every later quarantine. An attempt that succeeds tells them itself (acquire.lua).
func (g *guard) granted() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.longest
}

// attempting counts a TTL as long as an attempt asks for it, and reports whether it is longer than any that was granted: then
// attempted has to be called.
func (g *guard) attempting(ttl time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ttl <= g.longest {
		return false
	}
	g.attempts[ttl]++
	return true
}

// attempted ends what attempting began.
func (g *guard) attempted(ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.attempts[ttl]--; g.attempts[ttl] == 0 {
		delete(g.attempts, ttl)
	}
}

// grant records that a lease of this client has a TTL, and tells the nodes in quarantine.
func (g *guard) grant(ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ttl > g.longest {
		g.longest = ttl
		g.prolong()
	}
}

// muchLonger is how many times as long as usual a lease time may be without a warning.
const muchLonger = 10

// warnOfLong warns once of a lease time that makes quarantines much longer than they are without it.
func (g *guard) warnOfLong(ttl time.Duration) {
	usual := max(g.c.cfg.TTL, g.c.cfg.GuardTime)
	if ttl/muchLonger <= usual || g.c.cfg.NoRestartGuard {
		return
	}
	g.warn("long", "lease time is much longer than TTL and GuardTime: a node that is restarted stays in quarantine as long",
		"lease time", ttl, "usual", usual)
}

// quarantined records whether node i is in quarantine. The other nodes are asked for what they know: for each incarnation,
// whenever its quarantine has become longer, and once more later, since a lease that was being taken when the node forgot may not
// have got to them the first time. It is called with g.mu held.
func (g *guard) quarantined(i int, r script.Record) {
	q := &g.quarantines[i]
	if r.Quarantine == 0 {
		if r.Incarnation == q.incarnation { // else it is an answer from before
			q.until, q.ttl = clock.Instant{}, 0
		}
		return
	}
	q.until, q.ttl = g.c.clock.Now().Add(r.Quarantine), r.TTL
	if q.incarnation == r.Incarnation && q.until.Before(q.askedUntil.Add(time.Second)) {
		return
	}
	q.incarnation, q.askedUntil = r.Incarnation, q.until
	for j := range g.c.nodes {
		if j != i {
			g.watch(j, 2)
		}
	}
}

// reported checks a node whose answer says how long its quarantine lasts yet, if that is longer than any lease can be: it began while
// the node's clock was ahead, and the check sets it right (check.lua).
func (g *guard) reported(i int, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := &g.quarantines[i]; left-margin > g.longest && !q.checking {
		q.checking = true
		g.group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), g.c.cfg.NodeTimeout)
			_, _ = g.c.nodes[i].Check(ctx)
			cancel()
			g.mu.Lock()
			q.checking = false
			g.mu.Unlock()
			return nil
		})
	}
}

// margin is more than a quarantine may be longer than the longest TTL: behind Sentinel it is, by three seconds.
const margin = 5 * time.Second

// prolong tells the nodes in quarantine of a longer TTL than they know of. It is called with g.mu held.
func (g *guard) prolong() {
	for i := range g.quarantines {
		if q := &g.quarantines[i]; q.ttl != 0 && q.ttl < g.longest {
			q.ttl = 0 // until it has answered
			g.watch(i, 1)
		}
	}
}

// A watcher checks one node again and again while any node is in quarantine, until it has answered as often as is wanted. There
// is at most one for each node, however often nodes are restarted.
type watcher struct {
	answers int           // how many more are wanted; none if it does not run
	waiting []func()      // told when the node was checked next, or could not be
	wake    chan struct{} // receives when something new is wanted; has room for one
}

// watch has a node checked now, and then until it has answered so often. Close waits for the first check. It is called with
// g.mu held.
func (g *guard) watch(i, answers int) {
	w := &g.watchers[i]
	running := w.answers > 0
	w.answers = max(w.answers, answers)
	w.waiting = append(w.waiting, g.awaited())
	if running {
		select {
		case w.wake <- struct{}{}:
		default:
		}
		return
	}
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
	}
	g.group.Go(func() error {
		g.keepWatch(i)
		return nil
	})
}

// keepWatch is the watcher of a node.
func (g *guard) keepWatch(i int) {
	timeout := g.c.cfg.NodeTimeout
	w := &g.watchers[i]
	for pause := timeout; ; {
		g.mu.Lock()
		waiting := w.waiting
		w.waiting = nil
		select {
		case <-w.wake: // of what is taken now
		default:
		}
		g.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		_, err := g.c.nodes[i].Check(ctx)
		cancel()
		for _, done := range waiting {
			done()
		}

		g.mu.Lock()
		if err == nil && len(w.waiting) == 0 { // what was wanted meanwhile is not answered yet
			w.answers--
		}
		left := g.quarantineEnd().Sub(g.c.clock.Now())
		if w.answers == 0 || left <= 0 && len(w.waiting) == 0 {
			w.answers = 0
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		wait := min(left/2, checkAgain)
		if err != nil {
			wait = min(pause, max(left/16, timeout)) // the nearer the end, the more often
			pause = 2 * wait
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.wake:
			pause = timeout
		case <-g.c.stopping:
			g.mu.Lock()
			if len(w.waiting) == 0 {
				w.answers = 0
				g.mu.Unlock()
				timer.Stop()
				return
			}
			g.mu.Unlock()
		}
		timer.Stop()
	}
}

// checkAgain is how long after an answer a node is checked again at most, and half of what is left of a quarantine at most:
// long enough for a lease that was being taken to have got there.
const checkAgain = time.Minute

// quarantineEnd is when the last quarantine ends. It is called with g.mu held.
func (g *guard) quarantineEnd() (end clock.Instant) {
	for i := range g.quarantines {
		if until := g.quarantines[i].until; until.After(end) {
			end = until
		}
	}
	return end
}

// awaited begins a check that Close has to wait for, and returns what ends it: a client that finds a quarantine and is closed
// leaves it as long as it should be. What follows from an answer counts too. It is called with g.mu held.
func (g *guard) awaited() (done func()) {
	if g.ended && g.checks == 0 {
		return func() {}
	}
	g.checks++
	g.rulings.Add(1)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.checks--
		g.rulings.Done()
	}
}
