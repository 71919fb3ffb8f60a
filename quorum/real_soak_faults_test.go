package quorum_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// What can happen to a server, and to the network between a client and a server.

// A serverFault befalls one server, and all clients with it.
type serverFault struct {
	name  string
	begin func(m *machines, i int)
	end   func(m *machines, i int) // nil: nothing is to be put right
	every time.Duration            // it happens over and over, until its end
	// forgets: the server comes back without what it knew, or with less.
	forgets bool
}

// often is how often what takes no time happens, so that it finds every request once in the middle of it.
const often = soakTTL / 20

// Nothing is done to a server while another fault has it: one that is stopped does not answer us either.
var serverFaults = []serverFault{
	{name: "stopped", begin: func(m *machines, i int) { m.pause(i) }, end: func(m *machines, i int) { m.resume(i) }},
	{name: "killed, and empty", begin: func(m *machines, i int) { m.kill(i) }, end: func(m *machines, i int) { m.restart(i) }, forgets: true},
	{name: "restarted empty", begin: func(m *machines, i int) { m.restart(i) }, forgets: true},
	{name: "restarted from an old snapshot", begin: (*machines).snapshot, end: (*machines).restore, forgets: true},
	{name: "connections killed", begin: command("client", "kill", "type", "normal"), every: often},
	{name: "subscriptions killed", begin: command("client", "kill", "type", "pubsub"), every: often},
	{name: "scripts flushed", begin: command("script", "flush"), every: often},
	{name: "flushed", begin: command("flushall"), every: soakTTL / 5, forgets: true},
	{
		name:  "all permissions withdrawn", // but the one to give them back
		begin: command("acl", "setuser", "default", "-@all", "+acl"), end: command("acl", "setuser", "default", "+@all"),
	},
	{
		name:  "permission to expire withdrawn",
		begin: command("acl", "setuser", "default", "-pexpire"), end: command("acl", "setuser", "default", "+@all"),
	},
	{
		name:  "memory full",
		begin: command("config", "set", "maxmemory", "1"), end: command("config", "set", "maxmemory", "0"),
	},
}

// command returns a fault that is a command.
func command(args ...any) func(*machines, int) {
	return func(m *machines, i int) { m.must(m.servers[i].Client().Do(m.t.Context(), args...).Err()) }
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
	// all: one client is cut off from all servers.
	all bool
}

var linkFaults = []linkFault{
	{name: "cut", begin: func(p *proxy, _ *rand.Rand) { p.cut.Store(true) }},
	{name: "cut off from all", begin: func(p *proxy, _ *rand.Rand) { p.cut.Store(true) }, all: true},
	{name: "requests lost", begin: func(p *proxy, _ *rand.Rand) { p.requests.lost.Store(true) }},
	{name: "replies lost", begin: func(p *proxy, _ *rand.Rand) { p.replies.lost.Store(true) }},
	{name: "slow", begin: func(p *proxy, g *rand.Rand) { p.slow(upTo(g, soakNodeTimeout), upTo(g, soakNodeTimeout)) }},
	{name: "held back", begin: func(p *proxy, _ *rand.Rand) { p.hold() }},
	{name: "reset", begin: func(p *proxy, _ *rand.Rand) { p.reset() }, every: often},
}

// upTo draws a duration below d.
func upTo(g *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(g.Float64() * float64(d))
}
