package quorum_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/internal/simulation"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// unshared has every request leave at once. Which of several requests of one moment share a round trip is a matter of
// chance, and a run has to repeat.
const unshared = 1 << 20

// schedule is everything about a run that follows from its seed before it begins.
type schedule struct {
	seed           uint64
	nodes, clients int
	workers        int // of each client
	names          []string
	ttl            time.Duration
	nodeTimeout    time.Duration
	maxHold        time.Duration
	longest        float64 // hold of a lock, in TTLs
	latency        time.Duration
	length         time.Duration
	apart          time.Duration // how far wall clocks may be off
	plan           simulation.Plan

	// What the assumptions allow to check.
	exclusion, tokens bool
	// set: clocks are set, so nobody knows when a TTL is over.
	set bool
	// forced: locks are force-released, and no two nodes lose data within two TTLs.
	forced bool
	// vanish: nodes lose locks that are held, and keep their counters.
	vanish bool
	rng    *rand.Rand
}

// newSchedule draws a schedule. In every fourth one locks are force-released. Another fourth breaks the assumptions: clocks
// that are set or run at any rate, locks that vanish under their holders, or a majority that loses its data.
func newSchedule(seed uint64, forget simulation.Forgetting) *schedule {
	g := rand.New(rand.NewPCG(seed, 0x7365_6564))
	s := &schedule{
		seed: seed, nodes: []int{3, 3, 5}[g.IntN(3)], clients: []int{2, 2, 2, 3, 3, 4}[g.IntN(6)], workers: 1, names: []string{"x"},
		ttl:       time.Duration(500+g.IntN(2500)) * time.Millisecond,
		longest:   1.5,
		exclusion: true, tokens: true, rng: g,
	}
	if s.clients == 2 && g.IntN(2) == 0 {
		s.workers = 2 + g.IntN(3)
	}
	if g.IntN(4) == 0 {
		s.names = append(s.names, "y")
	}
	s.nodeTimeout = (s.ttl / time.Duration(6+g.IntN(8))).Truncate(time.Millisecond)
	if g.IntN(5) == 0 {
		s.maxHold = s.ttl + time.Duration(g.Float64()*float64(s.ttl))
	}
	s.latency = s.nodeTimeout / time.Duration(12+g.IntN(120))
	s.length = time.Duration((2 + 3*g.Float64()) * float64(s.ttl))

	limits := simulation.Limits{
		Nodes: s.nodes, Clients: s.clients, TTL: s.ttl, Length: s.length, Faults: 1 + g.IntN(8),
		Forget: forget, Base: simulation.Fair(s.latency),
	}
	if seed%4 == 3 {
		s.exclusion = false
		switch kind := g.IntN(4); kind {
		case 0:
			limits.Forget, s.tokens = simulation.Everybody, false
		case 1:
			limits.Vanish, s.vanish = true, true
		default:
			limits.Forget, limits.Jumps, s.set = simulation.Never, true, true
			limits.Vanish, s.vanish = kind == 2, kind == 2
		}
	}
	if seed%4 == 1 {
		// What breaks the rules of a force-release takes few nodes and many faults.
		s.forced, limits.Forget = true, min(limits.Forget, simulation.One)
		s.nodes, limits.Nodes, limits.Faults = 3, 3, 4+g.IntN(8)
	}
	if g.IntN(2) == 0 { // a network that is a little bad all the time
		limits.Base.LoseAsk, limits.Base.LoseReply = 0.01*g.Float64(), 0.01*g.Float64()
		limits.Base.Tail, limits.Base.LateBy = 0.03*g.Float64(), s.nodeTimeout
		limits.Base.Twice, limits.Base.Reset = 0.02*g.Float64(), 0.005*g.Float64()
	}
	// What the clocks show bridges a counter that was lost. Where none is, it does not matter at all.
	s.apart = s.ttl / 20
	if g.IntN(2) == 0 || s.set {
		s.apart = s.ttl
		if s.tokens {
			limits.Forget = simulation.Never
		}
	}
	s.plan = simulation.NewPlan(seed, limits)
	return s
}

// patience is how long it may take at most until everybody who waits had the lock once: what is left runs out, and each
// of them may sleep through a poll.
func (s *schedule) patience() time.Duration {
	p := 3*s.ttl + time.Duration(s.clients*s.workers)*3*time.Second
	if s.set {
		p += 60 * s.ttl
	}
	return p
}

func (s *schedule) String() string {
	kind := "the assumptions hold"
	switch {
	case s.forced:
		kind = "locks are force-released"
	case s.set && s.vanish:
		kind = "clocks are set, and locks vanish: only tokens are checked"
	case s.set:
		kind = "clocks are set: only tokens are checked"
	case s.vanish:
		kind = "locks vanish: only tokens are checked"
	case !s.exclusion:
		kind = "all nodes may forget at once: only liveness is checked"
	}
	return fmt.Sprintf("seed %d: %s; %d nodes, %d clients of %d, names %s, TTL %v, node timeout %v, max hold %v, latency %v, length %v",
		s.seed, kind, s.nodes, s.clients, s.workers, strings.Join(s.names, " "), s.ttl, s.nodeTimeout, s.maxHold, s.latency, s.length)
}

// play runs the schedule, inside a bubble.
func (r *run) play(t *testing.T) {
	g := r.rng
	w := simulation.New(r.seed, r.nodes, r.clients, simulation.Fair(r.latency))
	log := &history.Recorder{}
	w.OnFault = func(at time.Duration, what string) { log.Record(history.Event{At: at, Kind: history.Note, Text: what}) }
	w.OnScript = func(e simulation.Executed) {
		if e.Script == "acquire" && e.Status == "granted" {
			log.Record(history.Event{
				At: e.At, Kind: history.Voted, Node: w.Node(e.Node).Name(), Name: e.Keys[0], Holder: e.Args[2], Token: e.Fence,
			})
		}
		switch {
		case e.Script == "revoke" && e.Status == "stored":
			for _, holder := range e.Args[2:] {
				if r.revocations.stored(holder, e.Node, e.At) {
					log.Record(history.Event{At: e.At, Kind: history.Revoked, Name: e.Keys[0], Holder: holder})
				}
			}
		case e.Script == "force_release" && e.Status == "released":
			for _, holder := range e.Args[2:] {
				log.Record(history.Event{At: e.At, Kind: history.Freed, Name: e.Keys[0], Holder: holder, Node: w.Node(e.Node).Name()})
			}
		}
		if e.Copy && (e.Status == "granted" || e.Status == "restored") {
			// The copy of a request that had been answered. No TCP connection does that, so nobody looks out for it, and
			// what it put there stays until its TTL is over.
			r.copied[e.Args[2]+" on "+w.Node(e.Node).Name()] = true
			log.Record(history.Event{At: e.At, Kind: history.Note, Text: fmt.Sprintf("a copy on %s: %s %s %s",
				w.Node(e.Node).Name(), e.Script, e.Status, e.Args[2])})
		}
	}
	// Clocks run apart by less than the drift factor of 1 %, if often by little less, and are some tens of milliseconds
	// off. Where all nodes are fast and all clients slow, every moment of the drift is needed.
	const most = 0.0048
	worst := g.IntN(3) == 0
	rate := func(sign float64) float64 {
		if worst {
			return 1 + sign*most
		}
		return 1 + (g.Float64()*2-1)*most
	}
	off := func() time.Duration { return time.Duration((g.Float64()*2 - 1) * float64(r.apart)) }
	for i := range r.nodes {
		w.Node(i).Skew(rate(1), off())
	}
	res := history.NewGuarded(log, w.Now)
	var procs []*process
	for i := range r.clients {
		w.Client(i).Skew(rate(-1), off())
		procs = append(procs, r.start(t, w, i, log, res))
	}
	w.Run(r.plan)

	var all sync.WaitGroup
	for _, p := range procs {
		for i := range r.workers {
			all.Go(func() { p.work(i) })
		}
	}
	time.Sleep(r.length - w.Now())
	w.Heal(r.latency)
	log.Record(history.Event{At: w.Now(), Kind: history.Healed})
	all.Wait()
	// Not at one moment: what then came first would be a matter of chance.
	for _, p := range procs {
		for _, name := range r.names {
			time.Sleep(r.latency / 7)
			all.Go(func() { p.last(name) })
		}
	}
	all.Wait()
	// What failed was taken back, and what ended was freed, as soon as the nodes answered.
	time.Sleep(600*time.Millisecond + 2*r.nodeTimeout)
	for _, p := range procs {
		if !p.dead.Load() && !r.set {
			r.unclean(w, p)
		}
	}
	for _, p := range procs {
		time.Sleep(r.latency / 7)
		all.Go(func() { _ = p.c.Close() })
	}
	all.Wait()
	// Everything of this run is over when a TTL has passed.
	if !r.set {
		time.Sleep(r.ttl + r.ttl/50 + r.nodeTimeout + 50*time.Millisecond)
		for i := range r.nodes {
			for _, key := range w.Keys(i) {
				if !strings.HasPrefix(key, "redquorum_") {
					r.left = append(r.left, fmt.Sprintf("%s on %s", key, w.Node(i).Name()))
				}
			}
		}
	} else {
		time.Sleep(10 * r.ttl)
	}
	r.history, r.counts = log.History(), w.Counts()
}

// revocations tell when so many nodes have stored the revocation of a holder that it cannot renew any more, even if one of them
// loses it.
type revocations struct {
	need   int           // how many nodes that takes
	window time.Duration // within which they have to store it: one force-release
	nodes  map[string]map[int]time.Duration
	done   map[string]bool
}

// stored records that a node has stored a revocation, and reports whether that was the first time that so many have.
func (r *revocations) stored(holder string, node int, at time.Duration) bool {
	if r.nodes[holder] == nil {
		r.nodes[holder] = make(map[int]time.Duration)
	}
	r.nodes[holder][node] = at
	n := 0
	for _, then := range r.nodes[holder] {
		if at-then <= r.window {
			n++
		}
	}
	if n < r.need || r.done[holder] {
		return false
	}
	r.done[holder] = true
	return true
}

// unclean finds locks that a client has left on the nodes although it holds none.
func (r *run) unclean(w *simulation.World, p *process) {
	for i := range r.nodes {
		for _, name := range r.names {
			for _, holder := range w.Fields(i, name) {
				where := holder + " on " + w.Node(i).Name()
				if strings.HasPrefix(holder, p.holder()+":") && !r.copied[where] {
					r.left = append(r.left, fmt.Sprintf("%s of %s before its TTL", name, where))
				}
			}
		}
	}
}

// start makes a client.
func (r *run) start(t *testing.T, w *simulation.World, i int, log *history.Recorder, res *history.Guarded) *process {
	client := w.Client(i)
	var nodes []*node.Node
	for j := range r.nodes {
		n, err := node.New(&redis.Options{
			Addr: w.Node(j).Name(), Dialer: client.Dialer(j), ReadBufferSize: 512, WriteBufferSize: 512,
		}, node.WithClock(client.Clock()), node.WithBatches(unshared), node.WithSlack(time.Duration(1+i*r.nodes+j)))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	c, err := quorum.New(nodes, quorum.Config{
		TTL: r.ttl, NodeTimeout: r.nodeTimeout, MaxHold: r.maxHold, Clock: client.Clock(), Logger: slog.New(suspicions{r}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{schedule: r.schedule, id: i, c: c, log: log, res: res, now: w.Now, sleep: client.Sleep}
	p.done = func() bool { return w.Now() >= r.length }
	// A paused client hears of the end late. Had it looked it would have known: so long it believed, and no longer.
	p.outlive = func(l *quorum.Lease) time.Duration {
		<-l.Done()
		late := client.Clock().Ago(quorum.End(l))
		if late > time.Millisecond {
			r.overslept.Add(1)
		}
		return w.Now() - late
	}
	if i > 0 { // the first one stays, so that somebody is left
		p.vanish = client.Vanish
	}
	quorum.Fix(c, p.holder(), client.Random())
	return p
}
