package quorum_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redquorum/redquorum/internal/quorumtest"
)

// What can happen to a server, and to the network between a client and a server.

// A serverFault befalls one server, and all clients with it.
type serverFault struct {
	name  string
	begin func(m *quorumtest.Machines, i int)
	end   func(m *quorumtest.Machines, i int) // nil: nothing is to be put right
	every time.Duration                       // it happens over and over, until its end
	// met counts what clients met with on the way to the server because of it. A server that only forgets has none: it
	// has another incarnation in the end, which is the clients' doing.
	met effect
	// forgets: the server comes back without what it knew, or with less.
	forgets bool
}

// An effect is something that a proxy sees, and has seen more often when a fault is over than when it began.
type effect func(p *quorumtest.Proxy) int64

// said is the effect that a server answers with one of these remarks.
func said(which ...string) effect {
	return func(p *quorumtest.Proxy) (sum int64) {
		for i, remark := range quorumtest.Remarks {
			if slices.Contains(which, remark) {
				sum += p.Replies.Said[i].Load()
			}
		}
		return sum
	}
}

func asked(p *quorumtest.Proxy) int64  { return p.Requests.Passed.Load() }
func hungUp(p *quorumtest.Proxy) int64 { return p.HungUp.Load() }
func vanished(p *quorumtest.Proxy) int64 {
	return p.Requests.Vanished.Load() + p.Replies.Vanished.Load()
}
func lostRequest(p *quorumtest.Proxy) int64 { return p.Requests.Vanished.Load() }
func lostReply(p *quorumtest.Proxy) int64   { return p.Replies.Vanished.Load() }
func delayed(p *quorumtest.Proxy) int64     { return p.Requests.Delayed.Load() + p.Replies.Delayed.Load() }
func kept(p *quorumtest.Proxy) int64        { return p.Requests.Kept.Load() + p.Replies.Kept.Load() }
func broken(p *quorumtest.Proxy) int64      { return p.Broken.Load() }

// often is how often what takes no time happens, so that it finds every request once in the middle of it.
const often = soakTTL / 20

// Nothing is done to a server while another fault has it: one that is stopped does not answer us either.
var serverFaults = []serverFault{
	{name: "stopped", begin: stop, end: func(m *quorumtest.Machines, i int) { m.Resume(i) }, met: asked},
	{name: "killed, and empty", begin: func(m *quorumtest.Machines, i int) { m.Kill(i) }, end: func(m *quorumtest.Machines, i int) { m.Restart(i) }, forgets: true},
	{name: "restarted empty", begin: func(m *quorumtest.Machines, i int) { m.Restart(i) }, forgets: true},
	{name: "restarted from an old snapshot", begin: snapshot, end: restore, forgets: true},
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
func command(args ...any) func(*quorumtest.Machines, int) {
	return func(m *quorumtest.Machines, i int) { m.Must(m.Servers[i].Client().Do(m.T.Context(), args...).Err()) }
}

// stop stops a server, which then answers nobody.
func stop(m *quorumtest.Machines, i int) {
	m.Pause(i)
	ctx, cancel := context.WithTimeout(m.T.Context(), often/5)
	defer cancel()
	if m.Servers[i].Client().Ping(ctx).Err() == nil {
		m.T.Errorf("server %d is stopped, and answers", i)
	}
}

// snapshot has a server write down what it knows, where it does not find it by itself.
func snapshot(m *quorumtest.Machines, i int) {
	m.Must(m.Servers[i].Client().Save(m.T.Context()).Err())
	dir := m.Servers[i].Dir()
	m.Must(os.Rename(filepath.Join(dir, "dump.rdb"), filepath.Join(dir, "old.rdb")))
}

// restore takes a server back to its snapshot.
func restore(m *quorumtest.Machines, i int) {
	m.Kill(i)
	dir := m.Servers[i].Dir()
	m.Must(os.Rename(filepath.Join(dir, "old.rdb"), filepath.Join(dir, "dump.rdb")))
	m.Restart(i)
	m.Must(os.Remove(filepath.Join(dir, "dump.rdb")))
}

// A linkFault befalls the way between some clients and some servers. Its end is proxy.mend.
type linkFault struct {
	name  string
	begin func(p *quorumtest.Proxy, g *rand.Rand)
	every time.Duration
	met   effect
	// all: one client is cut off from all servers.
	all bool
}

var linkFaults = []linkFault{
	{name: "cut", begin: func(p *quorumtest.Proxy, _ *rand.Rand) { p.Cut.Store(true) }, met: vanished},
	{name: "cut off from all", begin: func(p *quorumtest.Proxy, _ *rand.Rand) { p.Cut.Store(true) }, met: vanished, all: true},
	{name: "requests lost", begin: func(p *quorumtest.Proxy, _ *rand.Rand) { p.Requests.Lost.Store(true) }, met: lostRequest},
	{name: "replies lost", begin: func(p *quorumtest.Proxy, _ *rand.Rand) { p.Replies.Lost.Store(true) }, met: lostReply},
	{name: "slow", begin: func(p *quorumtest.Proxy, g *rand.Rand) { p.Slow(upTo(g, soakNodeTimeout), upTo(g, soakNodeTimeout)) }, met: delayed},
	{name: "held back", begin: func(p *quorumtest.Proxy, _ *rand.Rand) { p.Hold() }, met: kept},
	{name: "reset", begin: func(p *quorumtest.Proxy, _ *rand.Rand) { p.Reset() }, met: broken, every: often},
}

// upTo draws a duration below d.
func upTo(g *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(g.Float64() * float64(d))
}
