package quorum_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A soakEvent is the begin or the end of a fault.
type soakEvent struct {
	at   time.Duration
	what string // for whoever reads the history
	do   func(r *soakRound)
}

// A soakPlan is when and where everything goes wrong in a round: with the servers, and with the network.
type soakPlan struct {
	rng            *rand.Rand
	servers, links []soakEvent
}

// newSoakPlan draws a plan in which every fault occurs.
//
// At most two of five servers are faulty at a time, each in a row of faults of its own, so there would be a quorum. A
// third row befalls the network between some clients and any two servers, so that there often is none, or only a bare
// one: that is what makes a server that forgets dangerous.
func newSoakPlan(seed uint64) *soakPlan {
	p := &soakPlan{rng: rand.New(rand.NewPCG(seed, 0x736f_616b))}
	p.serverRows()
	p.linkRow()
	for _, events := range [][]soakEvent{p.servers, p.links} {
		slices.SortStableFunc(events, func(a, b soakEvent) int { return cmp.Compare(a.at, b.at) })
	}
	return p
}

// An affliction is a server with a fault, and for how long it counts as faulty.
type affliction struct {
	server    int
	from, to  time.Duration
	forgotten time.Duration // until when what it forgot may matter
}

// serverRows deals all server faults into two rows.
func (p *soakPlan) serverRows() {
	var rows [2]time.Duration // when they are free again
	var all []affliction
	for _, i := range p.rng.Perm(len(serverFaults)) {
		f := serverFaults[i]
		row := &rows[0]
		if rows[1] < rows[0] {
			row = &rows[1]
		}
		length := soakTTL/10 + upTo(p.rng, soakTTL)
		a := affliction{server: -1}
		for a.server < 0 {
			*row += soakTTL/10 + upTo(p.rng, soakTTL/2)
			a = affliction{server: p.rng.IntN(soakNodes), from: *row, to: *row + length}
			if f.forgets {
				a.forgotten = a.to + soakTTL
			}
			if !bearable(append(slices.Clip(all), a)) {
				a.server = -1
			}
		}
		all = append(all, a)
		*row = a.to
		where := fmt.Sprintf("server %d ", a.server)
		add := func(at time.Duration, what string, do func(*soakRound)) {
			p.servers = append(p.servers, soakEvent{at, where + what, do})
		}
		begin := func(r *soakRound) { f.begin(r.Machines, a.server) }
		var b bite
		add(a.from, f.name, func(r *soakRound) {
			b = bite{kind: f.name, met: f.met, proxies: r.to(a.server)}
			b.begin()
			if f.forgets {
				r.lapses = append(r.lapses, lapse{f.name, a.server, r.Record(a.server)["incarnation"]})
			}
			begin(r)
		})
		for at := a.from + f.every; f.every > 0 && at < a.to; at += f.every {
			add(at, f.name+" again", begin)
		}
		add(a.to, "no longer "+f.name, func(r *soakRound) {
			if f.met != nil {
				r.await(&b, f.every, func() { begin(r) })
			}
			if f.end != nil {
				f.end(r.Machines, a.server)
			}
		})
	}
}

// bearable tells whether the latest affliction leaves the assumptions alone: no server has two faults at once, and no more
// than two have forgotten, or are about to, within a guard time. (The guard makes up for more, as long as there is a
// moment between any two at which the rest can tell a server that it is not new; who plans that has to wait for it.)
func bearable(all []affliction) bool {
	last := all[len(all)-1]
	forgot := map[int]bool{last.server: true}
	for _, a := range all[:len(all)-1] {
		if a.server == last.server && a.from < last.to+soakTTL/20 && last.from < a.to+soakTTL/20 {
			return false
		}
		if a.forgotten > 0 && a.from < last.forgotten && last.from < a.forgotten {
			forgot[a.server] = true
		}
	}
	return last.forgotten == 0 || len(forgot) <= soakNodes-soakQuorum
}

// linkRow deals all faults of the network into one row.
func (p *soakPlan) linkRow() {
	var now time.Duration
	for _, i := range p.rng.Perm(len(linkFaults)) {
		f := linkFaults[i]
		clients, servers := p.rng.Perm(soakClients)[:1+p.rng.IntN(soakClients-1)], p.rng.Perm(soakNodes)[:2]
		length := soakTTL/3 + upTo(p.rng, soakTTL*3/4)
		if f.all {
			clients, servers, length = clients[:1], p.rng.Perm(soakNodes), soakTTL+upTo(p.rng, soakTTL/2)
		}
		if len(clients) == 1 {
			clients[0] = p.rng.IntN(soakClients - 1) // the last may have died, and meets with nothing
		}
		draws := rand.New(rand.NewPCG(p.rng.Uint64(), 0))
		add := func(at time.Duration, what string, do func(*soakRound)) {
			p.links = append(p.links, soakEvent{at, fmt.Sprintf("between clients %v and servers %v: %s", clients, servers, what), do})
		}
		begin := func(r *soakRound) {
			for _, x := range r.between(clients, servers) {
				f.begin(x, draws)
			}
		}
		var b bite
		now += soakTTL/10 + upTo(p.rng, soakTTL/4)
		add(now, f.name, func(r *soakRound) {
			b = bite{kind: f.name, met: f.met, proxies: r.between(clients, servers)}
			b.begin()
			begin(r)
		})
		for at := now + f.every; f.every > 0 && at < now+length; at += f.every {
			add(at, f.name+" again", begin)
		}
		now += length
		add(now, "no longer "+f.name, func(r *soakRound) {
			r.await(&b, f.every, func() { begin(r) })
			for _, x := range b.proxies {
				x.Mend()
			}
		})
	}
}

// length is when the last fault ends, if each is met with in time.
func (p *soakPlan) length() time.Duration {
	return max(p.servers[len(p.servers)-1].at, p.links[len(p.links)-1].at)
}
