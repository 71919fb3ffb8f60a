package quorum

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// The restart guard.
//
// A node that was restarted without its data, or with old data, has forgotten locks that it voted for. Were it to vote
// at once, its vote and those of the nodes that never had the lock would make a second quorum. So every node has a
// record of which run of which server it is; a client checks it on every new connection (node/guard.go), and every
// acquire and renewal carries the incarnation that was found (acquire.lua, renew.lua). A node that forgot is in
// quarantine until whatever it may have forgotten has expired: for the guard time, the longest TTL in use.
//
// In quarantine it grants nothing. It takes renewals, so that a lease heals, but such a renewal counts as a vote only
// while the node's last vote for this lease has not run out (see lane.weigh): then the node voted for nobody else in
// between, whatever it forgot.
//
// A node without a record is new, or has forgotten everything; it cannot tell. All nodes together can: if every one of
// the configured nodes answers, and none has a record, the cluster is new. Otherwise this node forgot. Losing all of
// them at once looks like a new cluster, and no guard can help there.
type guard struct {
	c     *Coordinator
	group errgroup.Group // decisions; they end soon after the nodes are closed

	mu         sync.Mutex
	longest    time.Duration     // the longest TTL heard of
	runs       []string          // the servers' own names, by node, as of the last check of each
	alike      []string          // a name that another one has as well, by node that is asked again whether it is its own
	resting    []resting         // of nodes in quarantine, by node
	checks     int               // how many were taken in
	reconnects clock.Instant     // when nodes that are one server may connect anew
	told       map[string]string // warnings that were given: what each was last about

	deciding *decision // under way; nil if there is none

	rulings   sync.WaitGroup // under way, and questions; begun with mu held
	questions int            // see asking
	ended     bool           // no other begins
}

// A node is resting while it is in quarantine.
type resting struct {
	known time.Duration // the longest TTL that it knows of; 0 if it is in no quarantine, or is being told
	until clock.Instant // the quarantine's end
	about string        // the incarnation about which the others were asked,
	asked clock.Instant // and when its quarantine was to end then
}

// A decision is about nodes without a record.
type decision struct {
	done chan struct{}
	made bool // about some node at least, be it by somebody else; written before done is closed
}

// guardNodes turns the guard on, on every node.
func (c *Coordinator) guardNodes() {
	g := &c.guard
	g.c, g.longest, g.told = c, max(c.cfg.TTL, c.cfg.GuardTime), map[string]string{}
	n := len(c.nodes)
	g.runs, g.alike, g.resting = make([]string, n), make([]string, n), make([]resting, n)
	if c.cfg.NoRestartGuard {
		return
	}
	for i, n := range c.nodes {
		n.Guard(node.Guard{Client: func() string { return g.c.id }, Nodes: len(c.nodes), TTL: g.ttl, Checked: func(r script.Record) { g.checked(i, r) }})
	}
}

// ttl is the longest TTL heard of, on any node or from this client's own leases.
func (g *guard) ttl() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.longest
}

// uses takes in that a lease of this client uses a TTL.
func (g *guard) uses(ttl time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.longest = max(g.longest, ttl)
}

// checked takes in what a check of node i found. It is called before any request goes out on the connection.
func (g *guard) checked(i int, r script.Record) {
	n := g.c.nodes[i]
	n.pace.serves(r.Incarnation, g.c.clock.Now())

	g.mu.Lock()
	g.checks++
	number := g.checks
	g.longest = max(g.longest, r.TTL)
	g.rests(i, r)
	g.prolong()
	// What is concluded is said with mu held, too: of two checks the one that knows more has the last word.
	if g.compare(i, r.Run) {
		g.c.sameServer.Store(true)
	} else if g.apart() {
		g.c.sameServer.Store(false)
	}
	g.mu.Unlock()
	g.c.rests(n, number, r.Quarantine)
	g.c.tellTwins(n)
	if r.Quarantine > 0 {
		g.warnOf(n.name+"/forgot", r.Incarnation, "a node was restarted, or its replication has changed, and it may have forgotten locks: it does not vote for a while",
			slog.String("node", n.name), slog.Duration("for", r.Quarantine))
	}
	if r.Nodes != 0 && r.Nodes != len(g.c.nodes) {
		g.warn(n.name+"/nodes", "clients are configured with different numbers of nodes: unless the set of nodes is being changed, two of "+
			"them may hold one lock", slog.String("node", n.name), slog.Int("ours", len(g.c.nodes)), slog.Int("theirs", r.Nodes))
	}
	if off := time.UnixMicro(r.Now).Sub(g.c.clock.Wall()); off.Abs() > maxClamp {
		g.warn(n.name+"/time", "a node's clock shows another time than this machine's: locks are safe, but tokens take a second "+
			"round trip, and a counter that is lost may go back by the difference", slog.String("node", n.name), slog.Duration("ahead", off))
	}
	if r.Evicts != "" {
		g.warn(n.name+"/evicts", "a node may throw locks away when its memory is full: set maxmemory-policy to noeviction",
			slog.String("node", n.name), slog.String("policy", r.Evicts))
	}
	if r.Standing == script.StandingUnsettled {
		g.decide()
	}
}

// rests takes in whether a node is in quarantine. How long that has to last, all nodes together know: one of them may have been
// told of a longer TTL after this client had last looked at its record. So they are asked, for each incarnation and whenever its
// quarantine has become longer; and again later, since a lease that was being taken when the node forgot may not have got
// to them the first time. It is called with g.mu held.
func (g *guard) rests(i int, r script.Record) {
	is := &g.resting[i]
	if r.Quarantine == 0 {
		if r.Incarnation == is.about { // else it is an answer from before
			is.known = 0
		}
		return
	}
	is.known, is.until = r.TTL, g.c.clock.Now().Add(r.Quarantine)
	if is.about == r.Incarnation && is.until.Before(is.asked.Add(time.Second)) {
		return
	}
	is.about, is.asked = r.Incarnation, is.until
	for j := range g.c.nodes {
		if j != i {
			g.recheck(j, is.until, 2)
		}
	}
}

// prolong tells the nodes in quarantine of a longer TTL than they knew of when it began. A node that comes back from an old
// snapshot knows only what was in use when that was made; the other nodes may know better. It is called with g.mu held.
func (g *guard) prolong() {
	for i := range g.resting {
		if is := &g.resting[i]; is.known != 0 && is.known < g.longest {
			is.known = 0 // until the answer is there
			g.recheck(i, is.until, 1)
		}
	}
}

// ask asks all nodes for the longest TTL in use.
func (g *guard) ask() {
	if g.c.cfg.NoRestartGuard {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.c.nodes {
		g.recheck(i, clock.Instant{}, 1)
	}
}

// askAgain is how long after an answer a node is asked again at most, and half of what is left at most: long enough for a
// lease that was being taken to have got there.
const askAgain = time.Minute

// recheck checks a node, without waiting for it; checked takes in what it finds. Where it fails, the node is checked before its
// next request. For the sake of a quarantine it is repeated until that is over, or there were so many answers; Close waits for
// the first of them. It is called with g.mu held.
func (g *guard) recheck(i int, until clock.Instant, answers int) {
	asked := func() {}
	if until != (clock.Instant{}) {
		asked = g.asking()
	}
	g.group.Go(func() error {
		timeout := g.c.cfg.NodeTimeout
		for pause := timeout; ; pause *= 2 {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			_, err := g.c.nodes[i].Check(ctx)
			cancel()
			asked()
			asked = func() {}
			left := until.Sub(g.c.clock.Now())
			pause = min(pause, max(left/16, timeout)) // the nearer the end, the more often
			wait := pause
			if err == nil {
				answers--
				wait = min(left/2, askAgain)
			}
			if answers == 0 || left <= 0 || !g.c.rest(wait) {
				return nil
			}
		}
	})
}

// asking begins a question that Close has to wait for, and returns what ends it: who finds a quarantine and goes leaves it as
// long as it should be. What follows from an answer counts, too. It is called with g.mu held.
func (g *guard) asking() (end func()) {
	if g.ended && g.questions == 0 {
		return func() {}
	}
	g.questions++
	g.rulings.Add(1)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.questions--
		g.rulings.Done()
	}
}

// compare takes in the name of the server at node i, and tells whether another node is the same server. What was heard of
// that one may be old, and the two have changed places since: so it is asked again first. It is called with g.mu held.
func (g *guard) compare(i int, run string) (twins bool) {
	again := g.alike[i] == run
	g.alike[i], g.runs[i] = "", run
	for j, other := range g.runs {
		if j == i || run == "" || other != run {
			continue
		}
		if again {
			return true
		}
		g.alike[j] = run
		g.recheck(j, clock.Instant{}, 1)
	}
	return false
}

// apart tells whether every node is known to be a server of its own. It is called with g.mu held.
func (g *guard) apart() bool {
	for i, run := range g.runs {
		if run == "" || slices.Contains(g.runs[:i], run) {
			return false
		}
	}
	return true
}

// reconnect lets the nodes that are one server connect anew, once in a while: an address may lead elsewhere by now, and a connection
// that lives does not tell.
func (g *guard) reconnect() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.c.clock.Now(); !now.Before(g.reconnects) {
		g.reconnects = now.Add(reconnectEvery)
		apart := g.apart() // a lock has shown it, and no check has: the address may have moved in between
		for i, run := range g.runs {
			if apart {
				g.recheck(i, clock.Instant{}, 1)
			}
			if run == "" || !slices.Contains(g.runs[:i], run) && !slices.Contains(g.runs[i+1:], run) {
				continue
			}
			g.group.Go(func() error {
				g.c.nodes[i].Redial()
				ctx, cancel := context.WithTimeout(context.Background(), g.c.cfg.NodeTimeout)
				defer cancel()
				_, _ = g.c.nodes[i].Check(ctx)
				return nil
			})
		}
	}
}

// reconnectEvery is how often nodes that are one server connect anew, while locks are asked for.
const reconnectEvery = time.Second

// distinguish waits until it is known of nodes that seem to be one server whether they are.
func (g *guard) distinguish(ctx context.Context) {
	g.mu.Lock()
	alike := slices.Clone(g.alike)
	g.mu.Unlock()
	for i, name := range alike {
		if name != "" {
			ctx, cancel := context.WithTimeout(ctx, g.c.cfg.NodeTimeout)
			_, _ = g.c.nodes[i].Check(ctx)
			cancel()
		}
	}
}

// warn logs something once.
func (g *guard) warn(key, text string, attrs ...any) { g.warnOf(key, key, text, attrs...) }

// warnOf logs something once for each subject, of which there may be more and more: only the last one is remembered.
func (g *guard) warnOf(key, subject, text string, attrs ...any) {
	g.mu.Lock()
	told := g.told[key] == subject
	g.told[key] = subject
	g.mu.Unlock()
	if !told {
		g.c.log.Warn(text, attrs...)
	}
}
