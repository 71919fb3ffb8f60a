package history

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Linear checks with porcupine that the history is one that a lock on a single machine could have, where a grant may
// expire at any time after its holder stopped believing. A check that does not come to an end within the timeout is an
// error.
func Linear(h History, timeout time.Duration) error {
	byName := h.steps()
	var errs []error
	for name, ops := range byName {
		switch porcupine.CheckOperationsTimeout(lockModel, ops, timeout) {
		case porcupine.Illegal:
			errs = append(errs, fmt.Errorf("%s: no lock could have done this", name))
		case porcupine.Unknown:
			errs = append(errs, fmt.Errorf("%s: the check of %d operations did not end within %v", name, len(ops), timeout))
		case porcupine.Ok:
		}
	}
	return errors.Join(errs...)
}

// step is an operation of the model.
type step struct {
	what   action
	holder string
}

type action int

const (
	take   action = iota // the lock was free, and is the holder's now
	keep                 // the lock is the holder's
	give                 // the lock was the holder's, and is free now
	expire               // give, or nothing happened
)

func (s step) String() string {
	return [...]string{"take", "keep", "give", "expire"}[s.what] + " " + s.holder
}

// lockModel is a lock. Its state is the holder, "" if it is free.
var lockModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		holder, s := state.(string), input.(step)
		switch mine := holder == s.holder; s.what {
		case take:
			return holder == "", s.holder
		case keep:
			return mine, holder
		case give:
			return mine, ""
		case expire:
			if mine {
				return true, ""
			}
		}
		return true, holder
	},
	DescribeOperation: func(input, _ any) string { return input.(step).String() },
}

// steps turns a history into the model's operations, by name.
//
// An acquire whose outcome nobody knows is none of them. It may have held the lock for a while, or not; but whatever the
// others did while it may have, they could have done without it. To leave it out rejects the same histories, and saves
// the checker from trying every subset of such acquires at every moment.
func (h History) steps() map[string][]porcupine.Operation {
	ops := make(map[string][]porcupine.Operation)
	add := func(name string, s step, from, to time.Duration) {
		ops[name] = append(ops[name], porcupine.Operation{Input: s, Call: int64(from), Return: int64(to)})
	}
	asked, called := make(map[int]Event), make(map[int]Event)
	byOp, given := make(map[int]*tenure), make(map[*tenure]bool)
	for _, t := range h.tenures() {
		add(t.name, step{take, t.holder}, t.asked, t.granted)
		for op := range t.ops {
			byOp[op] = t
		}
	}
	for _, e := range h {
		switch e.Kind {
		case Asked:
			asked[e.Op] = e
		case Granted:
			if t := byOp[e.Op]; e.At != t.granted { // a nested hold
				add(t.name, step{keep, t.holder}, asked[e.Op].At, e.At)
			}
			delete(asked, e.Op)
		case Refused, Unknown:
			delete(asked, e.Op)
		case Call:
			called[e.Op] = e
		case Return:
			t := byOp[e.Op]
			if t == nil || !e.OK {
				continue
			}
			// What worked found the lock held; the release that ended the tenure freed it.
			s := step{keep, t.holder}
			if c := called[e.Op]; c.Text == "release" && t.ended <= e.At && t.ended >= c.At && !given[t] {
				s.what, given[t] = give, true
			}
			add(t.name, s, called[e.Op].At, e.At)
		}
	}
	for _, t := range byOp {
		if !given[t] && t.ended != never {
			given[t] = true
			add(t.name, step{expire, t.holder}, t.ended, math.MaxInt64)
		}
	}
	return ops
}
