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

	mu          sync.Mutex
	longest     time.Duration         // the longest TTL that was granted, as far as is known
	attempts    map[time.Duration]int // how many attempts under way ask for a longer TTL than that
	runs        []string              // the servers' own names, by node, as of the last check of each
	alike       []string              // a name that another one has as well, by node that is asked again whether it is its own
	quarantines []quarantine          // by node
	watchers    []watcher             // by node
	results     int                   // of checks, how many were taken in
	reconnects  clock.Instant         // when nodes that are one server may connect anew
	told        map[string]string     // warnings that were given: what each was last about

	deciding *decision // under way; nil if there is none

	rulings sync.WaitGroup // under way, and checks that Close waits for; begun with mu held
	checks  int            // of those, how many are checks
	ended   bool           // no other ruling begins
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
	g.attempts = map[time.Duration]int{}
	n := len(c.nodes)
	g.runs, g.alike = make([]string, n), make([]string, n)
	g.quarantines, g.watchers = make([]quarantine, n), make([]watcher, n)
	if c.cfg.NoRestartGuard {
		return
	}
	for i, n := range c.nodes {
		n.Guard(node.Guard{Client: func() string { return g.c.id }, Nodes: len(c.nodes), TTL: g.granted, Checked: func(r script.Record) { g.checked(i, r) }})
	}
}

// checked takes in what a check of node i found. It is called before any request goes out on the connection.
func (g *guard) checked(i int, r script.Record) {
	n := g.c.nodes[i]
	n.pace.serves(r.Incarnation, g.c.clock.Now())

	g.mu.Lock()
	g.results++
	number := g.results
	g.longest = max(g.longest, r.TTL)
	g.quarantined(i, r)
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
	if r.Shortened > 0 {
		g.c.log.Warn("quarantine shortened: the node's clock was ahead when it began", "node", n.name,
			"by", r.Shortened, "left", r.Quarantine)
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

// ask asks all nodes for the longest TTL in use.
func (g *guard) ask() {
	if g.c.cfg.NoRestartGuard {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.c.nodes {
		g.checkOnce(i)
	}
}

// checkOnce checks a node, without waiting for it; checked takes in what it finds. Where it fails, the node is checked before its
// next request.
func (g *guard) checkOnce(i int) {
	g.group.Go(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), g.c.cfg.NodeTimeout)
		defer cancel()
		_, _ = g.c.nodes[i].Check(ctx)
		return nil
	})
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
		g.checkOnce(j)
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
				g.checkOnce(i)
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
