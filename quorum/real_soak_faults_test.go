package quorum_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// What can happen to a server, and to the network between a client and a server.

// A serverFault befalls one server, and all clients with it.
type serverFault struct {
	name  string
	begin func(m *machines, i int)
	end   func(m *machines, i int) // nil: nothing is to be put right
	every time.Duration            // it happens over and over, until its end
	// met counts what clients met with on the way to the server because of it. A server that only forgets has none: it
	// has another incarnation in the end, which is the clients' doing.
	met effect
	// forgets: the server comes back without what it knew, or with less.
	forgets bool
}

// An effect is something that a proxy sees, and has seen more often when a fault is over than when it began.
type effect func(p *proxy) int64

// said is the effect that a server answers with one of these remarks.
func said(which ...string) effect {
	return func(p *proxy) (sum int64) {
		for i, remark := range remarks {
			if slices.Contains(which, remark) {
				sum += p.replies.said[i].Load()
			}
		}
		return sum
	}
}

func asked(p *proxy) int64       { return p.requests.passed.Load() }
func hungUp(p *proxy) int64      { return p.hungUp.Load() }
func vanished(p *proxy) int64    { return p.requests.vanished.Load() + p.replies.vanished.Load() }
func lostRequest(p *proxy) int64 { return p.requests.vanished.Load() }
func lostReply(p *proxy) int64   { return p.replies.vanished.Load() }
func delayed(p *proxy) int64     { return p.requests.delayed.Load() + p.replies.delayed.Load() }
func kept(p *proxy) int64        { return p.requests.kept.Load() + p.replies.kept.Load() }
func broken(p *proxy) int64      { return p.broken.Load() }

// often is how often what takes no time happens, so that it finds every request once in the middle of it.
const often = soakTTL / 20

// Nothing is done to a server while another fault has it: one that is stopped does not answer us either.
var serverFaults = []serverFault{
	{name: "stopped", begin: (*machines).stop, end: func(m *machines, i int) { m.resume(i) }, met: asked},
	{name: "killed, and empty", begin: func(m *machines, i int) { m.kill(i) }, end: func(m *machines, i int) { m.restart(i) }, forgets: true},
	{name: "restarted empty", begin: func(m *machines, i int) { m.restart(i) }, forgets: true},
	{name: "restarted from an old snapshot", begin: (*machines).snapshot, end: (*machines).restore, forgets: true},
	{name: "connections killed", begin: command("client", "kill", "type", "normal"), every: often, met: hungUp},
	{name: "subscriptions killed", begin: command("client", "kill", "type", "pubsub"), every: often, met: hungUp},
	{name: "scripts flushed", begin: command("script", "flush"), every: often, met: said("NOSCRIPT")},
	{name: "flushed", begin: command("flushall"), every: soakTTL / 5, met: said("stranger"), forgets: true},
	{
		name:  "all permissions withdrawn", // but the one to give them back
		begin: command("acl", "setuser", "default", "-@all", "+acl"), end: command("acl", "setuser", "default", "+@all"),
		met: said("NOPERM"),
	},
	{
		name:  "permission to expire withdrawn",
		begin: command("acl", "setuser", "default", "-pexpire"), end: command("acl", "setuser", "default", "+@all"),
		met: said("NOPERM", "can't run this command"),
	},
	{
		name:  "memory full",
		begin: command("config", "set", "maxmemory", "1"), end: command("config", "set", "maxmemory", "0"),
		met: said("OOM"),
	},
}

// command returns a fault that is a command.
func command(args ...any) func(*machines, int) {
	return func(m *machines, i int) { m.must(m.servers[i].Client().Do(m.t.Context(), args...).Err()) }
}

// stop stops a server, which then answers nobody.
func (m *machines) stop(i int) {
	m.pause(i)
	ctx, cancel := context.WithTimeout(m.t.Context(), often/5)
	defer cancel()
	if m.servers[i].Client().Ping(ctx).Err() == nil {
		m.t.Errorf("server %d is stopped, and answers", i)
	}
}

// snapshot has a server write down what it knows, where it does not find it by itself.
func (m *machines) snapshot(i int) {
	m.must(m.servers[i].Client().Save(m.t.Context()).Err())
	dir := m.servers[i].Dir()
	m.must(os.Rename(filepath.Join(dir, "dump.rdb"), filepath.Join(dir, "old.rdb")))
}

// restore takes a server back to its snapshot.
func (m *machines) restore(i int) {
	m.kill(i)
	dir := m.servers[i].Dir()
	m.must(os.Rename(filepath.Join(dir, "old.rdb"), filepath.Join(dir, "dump.rdb")))
	m.restart(i)
	m.must(os.Remove(filepath.Join(dir, "dump.rdb")))
}

// A linkFault befalls the way between some clients and some servers. Its end is proxy.mend.
type linkFault struct {
	name  string
	begin func(p *proxy, g *rand.Rand)
	every time.Duration
	met   effect
	// all: one client is cut off from all servers.
	all bool
}

var linkFaults = []linkFault{
	{name: "cut", begin: func(p *proxy, _ *rand.Rand) { p.cut.Store(true) }, met: vanished},
	{name: "cut off from all", begin: func(p *proxy, _ *rand.Rand) { p.cut.Store(true) }, met: vanished, all: true},
	{name: "requests lost", begin: func(p *proxy, _ *rand.Rand) { p.requests.lost.Store(true) }, met: lostRequest},
	{name: "replies lost", begin: func(p *proxy, _ *rand.Rand) { p.replies.lost.Store(true) }, met: lostReply},
	{name: "slow", begin: func(p *proxy, g *rand.Rand) { p.slow(upTo(g, soakNodeTimeout), upTo(g, soakNodeTimeout)) }, met: delayed},
	{name: "held back", begin: func(p *proxy, _ *rand.Rand) { p.hold() }, met: kept},
	{name: "reset", begin: func(p *proxy, _ *rand.Rand) { p.reset() }, met: broken, every: often},
}

// upTo draws a duration below d.
func upTo(g *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(g.Float64() * float64(d))
}
