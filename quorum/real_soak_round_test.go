package quorum_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/quorum"
)

// A soakRound is one plan and the clients that live through it, or do not.
type soakRound struct {
	*soak
	*schedule
	log     *history.Recorder
	plan    *soakPlan
	lapses  []lapse
	proxies [][]*quorumtest.Proxy // by client and server
	procs   []*process
	start   time.Time
	healed  atomic.Bool
}

func newSoakRound(s *soak) *soakRound {
	seed := s.seed + uint64(s.rounds) - 1
	plan := newSoakPlan(seed)
	return &soakRound{
		soak: s, log: &history.Recorder{}, plan: plan,
		schedule: &schedule{
			seed: seed, nodes: soakNodes, clients: soakClients, workers: soakWorkers, names: strings.Split("uvwxyz", ""),
			ttl: soakTTL, nodeTimeout: soakNodeTimeout, latency: time.Millisecond, longest: 0.5, length: plan.length(),
		},
	}
}

func (r *soakRound) now() time.Duration { return time.Since(r.start) }

// play lives through the round. It returns when everything has ended and been recorded.
func (r *soakRound) play() {
	r.start = time.Now()
	defer r.healed.Store(true) // a test that fails on the way must not leave clients behind that go on for ever
	res := history.NewGuarded(r.log, r.now)
	var all sync.WaitGroup
	for i := range r.clients {
		p := r.client(i, res)
		for j := range r.workers {
			all.Go(func() { p.work(j) })
		}
		all.Go(p.pester)
	}
	var links sync.WaitGroup
	links.Go(func() { r.befall(r.plan.links) })
	r.befall(r.plan.servers)
	links.Wait()
	r.log.Record(history.Event{At: r.now(), Kind: history.Healed})
	r.healed.Store(true)
	all.Wait()
	for _, p := range r.procs {
		for _, name := range r.names {
			all.Go(func() { p.last(name) })
		}
	}
	all.Wait()
	r.recalled()
	// What a client left that died runs out. Nothing else needs to: what failed was taken back, and what ended was freed,
	// as soon as the servers answered.
	r.Clean(r.ttl + 2*r.nodeTimeout)
	for _, p := range r.procs {
		r.Must(p.c.Close())
		p.leases.Wait()
		for _, x := range r.proxies[p.id] {
			x.Close()
		}
	}
	r.Clean(0)
}

// befall has everything of a row happen. What takes longer than planned puts off the rest, so that nothing comes closer to
// the end of what went before: a server must not forget sooner than the plan says.
func (r *soakRound) befall(events []soakEvent) {
	var late time.Duration
	for _, e := range events {
		time.Sleep(e.at + late - r.now())
		e.do(r)
		late = max(late, r.now()-e.at)
		r.log.Record(history.Event{At: r.now(), Kind: history.Note, Text: e.what})
	}
}

// client starts a client that reaches the servers through proxies of its own.
func (r *soakRound) client(i int, res *history.Guarded) *process {
	proxies, urls := r.BehindProxies()
	c := r.ClientAt(quorum.Config{TTL: r.ttl, NodeTimeout: r.nodeTimeout}, urls)
	schedule := *r.schedule
	if i == 0 { // it keeps a lock through several faults now and then
		schedule.longest = 5
	}
	p := &process{schedule: &schedule, id: i, c: c, log: r.log, res: res, now: r.now, sleep: time.Sleep, done: r.healed.Load}
	p.outlive = func(l *quorum.Lease) time.Duration { return history.LastAlive(l, r.now) }
	if i == r.clients-1 { // the others stay, so that there is work
		p.vanish = func() {
			for _, x := range proxies {
				x.Close()
			}
		}
	}
	r.proxies, r.procs = append(r.proxies, proxies), append(r.procs, p)
	return p
}

// pester tries for locks that others hold, over and over. Whoever waits in earnest seldom asks in the few moments between
// a server's forgetting and its being told again; this is who must be kept out then.
func (p *process) pester() {
	w := &caller{p, rand.New(rand.NewPCG(p.seed, uint64(5000+p.id)))}
	for {
		time.Sleep(w.about(p.ttl / 25))
		if p.over() {
			return
		}
		name := p.names[w.IntN(len(p.names))]
		op := p.log.Ask(p.now(), p.name(), name, "try", false)
		l, err := p.c.TryAcquire(context.Background(), name)
		if err != nil {
			p.failed(op, err)
		} else if p.granted(op, l) {
			p.res.Write(p.name(), op, l)
			p.release(op, l)
		}
	}
}
