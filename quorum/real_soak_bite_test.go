package quorum_test

import (
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
)

// That a fault was begun is no proof that it was one. Each has to be met with by clients before it ends, and goes on until
// then: on a slow machine they may have asked nobody in the meantime.

// A bite is a fault while it lasts, and what clients have met with of it so far.
type bite struct {
	kind    string
	met     effect
	proxies []*quorumtest.Proxy
	before  int64
}

func (b *bite) sum() (n int64) {
	if b.met == nil {
		return 0
	}
	for _, p := range b.proxies {
		n += b.met(p)
	}
	return n
}

func (b *bite) begin() { b.before = b.sum() }

// await waits until the fault has been met with, and counts it. What happens over and over goes on doing so. If nobody
// meets with it, it is not counted, and the test fails in the end.
func (r *soakRound) await(b *bite, every time.Duration, again func()) {
	next := time.Now()
	if quorumtest.Comes(quorumtest.Patience, func() bool {
		if b.sum() > b.before {
			return true
		}
		if every > 0 && time.Now().After(next) {
			again()
			next = time.Now().Add(every)
		}
		return false
	}) {
		r.bit(b.kind)
	}
}

func (s *soak) bit(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[kind]++
}

// A lapse is that a server forgot: which incarnation it was before.
type lapse struct {
	kind        string
	server      int
	incarnation string
}

// recalled counts the lapses that clients found out, and began another incarnation for.
func (r *soakRound) recalled() {
	for _, l := range r.lapses {
		if quorumtest.Comes(quorumtest.Patience, func() bool {
			now := r.Record(l.server)["incarnation"]
			return now != "" && now != l.incarnation
		}) {
			r.bit(l.kind + ", and found out")
		}
	}
}

// to are the proxies in front of a server.
func (r *soakRound) to(server int) (to []*quorumtest.Proxy) {
	for _, proxies := range r.proxies {
		to = append(to, proxies[server])
	}
	return to
}

// between are the proxies between clients and servers.
func (r *soakRound) between(clients, servers []int) (between []*quorumtest.Proxy) {
	for _, c := range clients {
		for _, s := range servers {
			between = append(between, r.proxies[c][s])
		}
	}
	return between
}
