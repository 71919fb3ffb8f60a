package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// The procedures of docs/nodes.md, step by step, under load; and what happens to who takes a short cut.

// longest is the longest TTL that anybody uses here.
const longest = ttl

// among is the cluster as a client sees it that is configured with some of the nodes.
func (cl *cluster) among(nodes string) *cluster {
	sub := &cluster{t: cl.t, clock: cl.clock, log: cl.log}
	for _, n := range nodes {
		sub.nodes = append(sub.nodes, cl.node(n))
	}
	return sub
}

// node is a node by its letter.
func (cl *cluster) node(letter rune) *faultnet.Node { return cl.nodes[letter-'a'] }

func (cl *cluster) stop(nodes string) {
	for _, n := range nodes {
		cl.node(n).Kill()
	}
}

// startEmpty starts nodes that never ran, or have lost everything.
func (cl *cluster) startEmpty(nodes string) {
	for _, n := range nodes {
		cl.node(n).Start(false)
	}
}

// fleet is clients that take locks all the time.
type fleet struct {
	*cluster
	log     history.Recorder
	start   time.Time
	names   []string
	members []*member
	rolled  uint64
}

// member is one process.
type member struct {
	f     *fleet
	who   string
	c     *quorum.Coordinator
	cable *faultnet.Cable
	end   context.CancelFunc
	wg    sync.WaitGroup
}

// launch starts processes that are configured with some of the nodes.
func (cl *cluster) launch(clients int, nodes string) *fleet {
	f := &fleet{cluster: cl, start: time.Now(), names: []string{"bolts", "nuts", "screws"}}
	for range clients {
		f.members = append(f.members, f.begin(nodes))
	}
	return f
}

// begin starts one.
func (f *fleet) begin(nodes string) *member {
	f.rolled++
	m := &member{f: f, who: fmt.Sprintf("%d with %s", f.rolled, nodes), cable: &faultnet.Cable{}}
	m.c = f.among(nodes).clientOn(m.cable, quorum.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	m.end = cancel
	draws := rand.New(rand.NewPCG(f.rolled, 0))
	m.wg.Go(func() {
		for ctx.Err() == nil {
			m.once(ctx, draws)
		}
	})
	return m
}

// quit ends a process, in peace or without a word to any node.
func (m *member) quit(dies bool) {
	if dies {
		for _, n := range m.f.nodes {
			m.cable.Cut(n)
		}
	}
	m.end()
	_ = m.c.Close() // of one that dies, nothing gets out
	m.wg.Wait()
}

// roll gives all clients another configuration, one after the other, every other of which dies with what it holds.
func (f *fleet) roll(nodes string) {
	for i := range f.members {
		f.rollOne(i, nodes)
		time.Sleep(5 * time.Second)
	}
}

func (f *fleet) rollOne(i int, nodes string) {
	f.members[i].quit(i%2 == 0)
	f.members[i] = f.begin(nodes)
}

func (f *fleet) record(e history.Event) {
	e.At = time.Since(f.start)
	f.log.Record(e)
}

// once takes a lock, holds it, and gives it back.
func (m *member) once(ctx context.Context, draws *rand.Rand) {
	upTo := func(d time.Duration) time.Duration { return time.Millisecond + time.Duration(draws.Int64N(int64(d))) }
	name, length := m.f.names[draws.IntN(len(m.f.names))], upTo(2*time.Second)
	opts := []quorum.Option{quorum.WithWaitTime(upTo(5 * time.Second))}
	switch draws.IntN(12) {
	case 0: // renewed by the watchdog, once
		length = upTo(15 * time.Second)
	case 1: // held to the end
		length = 3 * time.Second
		opts = append(opts, quorum.WithLeaseTime(2*time.Second))
	case 2:
		opts = append(opts, quorum.WithLeaseTime(longest))
	case 3, 4, 5:
		opts = append(opts, quorum.WithLeaseTime(10*time.Second))
	}
	op := m.f.log.Ask(time.Since(m.f.start), m.who, name, "acquire", false)
	l, err := m.c.Acquire(ctx, name, opts...)
	if err != nil {
		kind := history.Unknown
		if errors.Is(err, quorum.ErrNotAcquired) {
			kind = history.Refused
		}
		m.f.record(history.Event{Kind: kind, Op: op, Detail: err.Error()})
		time.Sleep(upTo(time.Second))
		return
	}
	m.f.record(history.Event{Kind: history.Granted, Op: op, Client: m.who, Name: name, Holder: l.Holder(), Token: l.Token()})
	m.wg.Go(func() {
		<-l.Done()
		m.f.record(history.Event{Kind: history.Ended, Op: op})
	})
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(min(length, 250*time.Millisecond))
		if l.Err() == nil {
			m.f.record(history.Event{Kind: history.Believed, Op: op})
		}
	}
	_ = l.Release(context.Background()) // it may be over
	time.Sleep(upTo(3 * time.Second))
}

// judge ends all clients and checks what happened.
func (f *fleet) judge() {
	f.t.Helper()
	for _, m := range f.members {
		m.quit(false)
	}
	end := time.Since(f.start)
	h := f.log.History()
	if err := errors.Join(history.Exclusion(h), history.Tokens(h)); err != nil {
		f.t.Error(err)
	}
	// An outage is a time without grants. A name may stay closed for as long as the lease of a client that died; that
	// happens to all names at once only if nobody gets any. Nor does anybody ask for every name at every moment.
	const soon = 5 * time.Second
	var widest time.Duration
	last, grants := map[string]time.Duration{}, 0
	gap := func(name string, at, most time.Duration) {
		if at-last[name] > most {
			f.t.Errorf("nobody was granted %q from %v to %v", name, last[name], at)
		}
		last[name] = at
	}
	for _, e := range h {
		if e.Kind == history.Granted {
			gap(e.Name, e.At, longest+3*soon)
			widest = max(widest, e.At-last[""])
			gap("", e.At, 4*soon)
			grants++
		}
	}
	for _, name := range f.names {
		gap(name, end, longest+3*soon)
	}
	gap("", end, 4*soon)
	if grants < int(end/(4*time.Second)) {
		f.t.Errorf("%d grants in %v show little", grants, end)
	}
	f.t.Logf("%d grants in %v, never more than %v without one", grants, end, widest)
}

// settled waits until nodes that were started empty vote.
func settled() { time.Sleep(longest + 10*time.Second) }

// Nobody holds a lock together with somebody else, and nobody waits for long, at any step of what docs/nodes.md tells
// to do. At the end the new nodes bear what they are there for.
func TestNodesAreChangedUnderLoad(t *testing.T) {
	for _, tt := range []struct {
		name          string
		nodes         int
		before, fresh string
		change        func(cl *cluster, f *fleet)
	}{
		{"replace one that is stopped", 4, "abc", "d", func(cl *cluster, f *fleet) {
			cl.stop("c")
			time.Sleep(5 * time.Second)
			f.roll("abd")
			cl.startEmpty("d")
			settled()
			cl.stop("a")
		}},
		{"replace one that runs on", 4, "abc", "d", func(cl *cluster, f *fleet) {
			f.roll("abd")
			cl.stop("c")
			cl.startEmpty("d")
			settled()
			cl.stop("b")
		}},
		{"replace one of five", 6, "abcde", "f", func(cl *cluster, f *fleet) {
			cl.stop("e")
			cl.stop("a") // one more may be down all the time
			f.roll("abcdf")
			cl.node('a').Start(true)
			cl.startEmpty("f")
			settled()
			cl.stop("ab")
		}},
		{"grow", 5, "abc", "de", func(cl *cluster, f *fleet) {
			f.roll("abcde")
			cl.startEmpty("de")
			settled()
			cl.stop("ab")
		}},
		{"shrink", 5, "abcde", "", func(cl *cluster, f *fleet) {
			cl.stop("de")
			time.Sleep(longest)
			f.roll("abc")
			cl.stop("a")
		}},
		{"grow one by one", 5, "abc", "de", func(cl *cluster, f *fleet) {
			for _, step := range []struct{ fresh, nodes, down string }{{"d", "abcd", "a"}, {"e", "abcde", "c"}} {
				cl.startEmpty(step.fresh)
				f.rollOne(0, step.nodes)
				settled()
				cl.stop(step.down) // from here on a fault is borne, in the middle of the roll-out
				f.roll(step.nodes)
				cl.node(rune(step.down[0])).Start(true)
				time.Sleep(time.Second)
			}
			cl.stop("ab")
		}},
		{"shrink one by one", 5, "abcde", "", func(cl *cluster, f *fleet) {
			cl.stop("a")
			f.roll("abcd")
			cl.node('a').Start(true)
			cl.stop("e")
			f.roll("abc")
			cl.stop("d")
			time.Sleep(5 * time.Second)
			cl.stop("b")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.nodes, func(t *testing.T, cl *cluster) {
				cl.stop(tt.fresh)
				for i, n := range cl.nodes {
					n.Delay(time.Duration(1+i) * time.Millisecond)
				}
				f := cl.launch(3, tt.before)
				time.Sleep(10 * time.Second)
				tt.change(cl, f)
				time.Sleep(longest)
				f.judge()
			})
		})
	}
}

// Each step that looks dispensable is not: without it there are two leases at once.
func TestNodesChangedByAShortCutMakeTwoHolders(t *testing.T) {
	for _, tt := range []struct {
		name     string
		nodes    int
		old      string // the nodes of the first holder
		oldCut   string // those that it does not reach
		fresh    string // the nodes of the second
		freshCut string
		absent   string            // what does not run at first
		before   func(cl *cluster) // the change, before either asks
		between  func(cl *cluster) // the change, after the first was granted the lock
		overlap  bool              // both have it at once
		refused  string            // "first" or "second"; nobody is if that is empty
	}{
		{name: "replace, both running", nodes: 4, old: "abc", oldCut: "b", fresh: "abd", freshCut: "a", absent: "d", overlap: true,
			before: func(cl *cluster) { cl.startEmpty("d"); cl.vote("abd") }},
		{name: "replace, the old one stopped", nodes: 4, old: "abc", oldCut: "b", fresh: "abd", freshCut: "a", absent: "d", refused: "first",
			before: func(cl *cluster) { cl.stop("c"); cl.startEmpty("d"); cl.vote("abd") }},
		{name: "replace, the new one not started", nodes: 4, old: "abc", oldCut: "b", fresh: "abd", freshCut: "a", absent: "d", refused: "second"},
		{name: "replace, the old one comes back", nodes: 4, old: "abc", oldCut: "b", fresh: "abd", freshCut: "a", absent: "d", overlap: true,
			before: func(cl *cluster) { cl.stop("c"); cl.startEmpty("d"); cl.vote("abd"); cl.node('c').Start(true) }},
		{name: "replace with an old copy", nodes: 4, old: "abc", oldCut: "b", fresh: "abd", freshCut: "a", absent: "d", overlap: true,
			between: func(cl *cluster) {
				// To the embedded server all its processes are one, as to one that has written everything to disk.
				cl.stop("c")
				cl.startEmpty("d")
				cl.copyRecord('c', 'd')
			}},
		{name: "replace with an empty one", nodes: 4, old: "abc", oldCut: "b", fresh: "abd", freshCut: "a", absent: "d", refused: "second",
			between: func(cl *cluster) { cl.stop("c"); cl.startEmpty("d") }},
		{name: "grow, the new ones running", nodes: 5, old: "abc", oldCut: "c", fresh: "abcde", freshCut: "ab", absent: "de", overlap: true,
			before: func(cl *cluster) { cl.startEmpty("de"); cl.vote("abcde") }},
		{name: "grow, the new ones not started", nodes: 5, old: "abc", oldCut: "c", fresh: "abcde", freshCut: "ab", absent: "de", refused: "second"},
		{name: "shrink at once", nodes: 5, old: "abcde", oldCut: "bc", fresh: "abc", freshCut: "", overlap: true,
			between: func(cl *cluster) { cl.stop("de") }},
		{name: "shrink after the longest TTL", nodes: 5, old: "abcde", oldCut: "bc", fresh: "abc", freshCut: "",
			between: func(cl *cluster) { cl.stop("de"); time.Sleep(longest) }},
		{name: "shrink, the old ones running", nodes: 5, old: "abcde", oldCut: "bc", fresh: "abc", freshCut: "", overlap: true,
			between: func(cl *cluster) { time.Sleep(longest / 2) }},
		{name: "two nodes of five at once", nodes: 7, old: "abcde", oldCut: "bc", fresh: "abcfg", freshCut: "ade", absent: "fg", overlap: true,
			before: func(cl *cluster) { cl.startEmpty("fg"); cl.vote("abcfg") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.nodes, func(t *testing.T, cl *cluster) {
				cl.stop(tt.absent)
				long := cl.among(tt.old).client(quorum.Config{})
				mustRelease(t, mustAcquire(t, long, t.Context(), "warm", quorum.WithLeaseTime(longest)))
				if tt.before != nil {
					tt.before(cl)
				}
				first, err := cl.reaching(tt.old, tt.oldCut).TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(longest))
				if (tt.refused == "first") != (err != nil) {
					t.Fatalf("the first holder: %v", err)
				}
				if tt.between != nil {
					tt.between(cl)
				}
				_, err = cl.reaching(tt.fresh, tt.freshCut).TryAcquire(t.Context(), "stock")
				if (tt.refused == "second") != (err != nil) {
					t.Errorf("the second holder: %v", err)
				}
				if overlap := err == nil && first != nil && first.Err() == nil; overlap != tt.overlap {
					t.Errorf("two holders at once: %v, want %v; the second: %v", overlap, tt.overlap, err)
				}
			})
		})
	}
}

// vote lets nodes that were started empty get to where they vote, by a client that uses them.
func (cl *cluster) vote(nodes string) {
	cl.t.Helper()
	if err := cl.among(nodes).client(quorum.Config{}).Ping(cl.t.Context()); err != nil {
		cl.t.Fatal(err)
	}
	settled()
}

// copyRecord gives a node another one's record, and none of its locks.
func (cl *cluster) copyRecord(from, to rune) {
	cl.t.Helper()
	fields, err := cl.node(from).Redis().HKeys(script.RecordKey)
	if err != nil {
		cl.t.Fatal(err)
	}
	for _, field := range fields {
		cl.node(to).Redis().HSet(script.RecordKey, field, cl.node(from).Redis().HGet(script.RecordKey, field))
	}
}

// reaching is a client of some nodes that does not reach all of them.
func (cl *cluster) reaching(nodes, cut string) *quorum.Coordinator {
	cl.t.Helper()
	cable := &faultnet.Cable{}
	for _, n := range cut {
		cable.Cut(cl.node(n))
	}
	return cl.among(nodes).clientOn(cable, quorum.Config{})
}
