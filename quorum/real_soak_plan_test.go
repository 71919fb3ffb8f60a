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
	kind string // the fault that begins; "" if one ends or goes on
	do   func(r *soakRound)
}

// A soakPlan is when and where everything goes wrong in a round.
type soakPlan struct {
	rng    *rand.Rand
	events []soakEvent
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
	slices.SortStableFunc(p.events, func(a, b soakEvent) int { return cmp.Compare(a.at, b.at) })
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
		p.add(a.from, where+f.name, f.name, func(r *soakRound) { f.begin(r.machines, a.server) })
		for at := a.from + f.every; f.every > 0 && at < a.to; at += f.every {
			p.add(at, where+f.name+" again", "", func(r *soakRound) { f.begin(r.machines, a.server) })
		}
		if f.end != nil {
			p.add(a.to, where+"no longer "+f.name, "", func(r *soakRound) { f.end(r.machines, a.server) })
		}
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
		each := func(do func(*proxy)) func(r *soakRound) {
			return func(r *soakRound) {
				for _, c := range clients {
					for _, s := range servers {
						do(r.proxies[c][s])
					}
				}
			}
		}
		draws := rand.New(rand.NewPCG(p.rng.Uint64(), 0))
		where := fmt.Sprintf("between clients %v and servers %v: ", clients, servers)
		begin := each(func(x *proxy) { f.begin(x, draws) })
		now += soakTTL/10 + upTo(p.rng, soakTTL/4)
		p.add(now, where+f.name, f.name, begin)
		for at := now + f.every; f.every > 0 && at < now+length; at += f.every {
			p.add(at, where+f.name+" again", "", begin)
		}
		now += length
		p.add(now, where+"no longer "+f.name, "", each((*proxy).mend))
	}
}

func (p *soakPlan) add(at time.Duration, what, kind string, do func(*soakRound)) {
	p.events = append(p.events, soakEvent{at, what, kind, do})
}

// length is when the last fault ends.
func (p *soakPlan) length() time.Duration { return p.events[len(p.events)-1].at }
