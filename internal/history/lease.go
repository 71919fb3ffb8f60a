package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// never is later than everything.
const never = time.Duration(math.MaxInt64)

// tenure is the time in which one holder had a lock, nested holds included.
type tenure struct {
	client, name, holder string
	token                int64
	asked, granted       time.Duration
	// ended is when the holder stopped believing: when its last handle ended, and not before it last looked and
	// believed.
	ended  time.Duration
	ops    map[int]bool // its handles
	votes  map[string]time.Duration
	repeat bool // a node granted it more than once
}

// tenures returns who had locks, in the order in which they learnt of it.
func (h History) tenures() []*tenure {
	asked := make(map[int]Event)
	byOp, byHolder := make(map[int]*tenure), make(map[string]*tenure)
	open := make(map[*tenure]int)
	var all []*tenure
	for _, e := range h {
		switch e.Kind {
		case Asked:
			asked[e.Op] = e
		case Granted:
			t := byHolder[e.Holder]
			if t == nil {
				a := asked[e.Op]
				t = &tenure{
					client: a.Client, name: a.Name, holder: e.Holder, token: e.Token, asked: a.At, granted: e.At,
					ops: make(map[int]bool), votes: make(map[string]time.Duration),
				}
				byHolder[e.Holder] = t
				all = append(all, t)
			}
			t.ops[e.Op] = true
			byOp[e.Op] = t
			open[t]++
		case Believed:
			if t := byOp[e.Op]; t != nil {
				t.ended = max(t.ended, e.At)
			}
		case Ended:
			if t := byOp[e.Op]; t != nil {
				t.ended = max(t.ended, e.At)
				open[t]--
			}
		}
	}
	for t, n := range open {
		if n > 0 {
			t.ended = never
		}
	}
	for _, e := range h { // votes come before the client knows
		if t := byHolder[e.Holder]; t != nil && e.Kind == Voted {
			_, again := t.votes[e.Node]
			t.repeat = t.repeat || again
			if !again {
				t.votes[e.Node] = e.At
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *tenure) int { return cmp.Compare(a.granted, b.granted) })
	return all
}

// before tells whether a is the earlier holder, as far as that can be told: b asked after a had been granted, or every
// node that granted both granted a first. Two quorums share a node, so there is at least one.
func (a *tenure) before(b *tenure) bool {
	if a.granted < b.asked {
		return true
	}
	if a.repeat || b.repeat {
		return false
	}
	shared := 0
	for node, at := range a.votes {
		if later, both := b.votes[node]; both {
			if later <= at {
				return false
			}
			shared++
		}
	}
	return shared > 0
}

// byName groups tenures.
func byName(all []*tenure) map[string][]*tenure {
	groups := make(map[string][]*tenure)
	for _, t := range all {
		groups[t.name] = append(groups[t.name], t)
	}
	return groups
}
