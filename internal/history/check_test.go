package history

import (
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// story tells a history event by event, at times that count up by a millisecond.
type story struct {
	Recorder
	now time.Duration
}

func (s *story) tick() time.Duration { s.now += ms; return s.now }

func (s *story) ask(client string) int { return s.Ask(s.tick(), client, "x", "acquire", false) }

func (s *story) tell(kind Kind, op int) { s.Record(Event{At: s.tick(), Kind: kind, Op: op}) }

func (s *story) granted(op int, holder string, token int64) {
	s.Record(Event{At: s.tick(), Kind: Granted, Op: op, Name: "x", Holder: holder, Token: token})
}

func (s *story) voted(node, holder string) {
	s.Record(Event{At: s.tick(), Kind: Voted, Node: node, Name: "x", Holder: holder})
}

func (s *story) wrote(op int, ok bool) { s.Record(Event{At: s.tick(), Kind: Wrote, Op: op, OK: ok}) }

func (s *story) call(op int, what string, ok bool) {
	s.Record(Event{At: s.tick(), Kind: Call, Op: op, Text: what})
	if what == "release" && ok {
		s.tell(Ended, op)
	}
	s.Record(Event{At: s.tick(), Kind: Return, Op: op, Text: what, OK: ok})
}

// hold is a whole lease.
func (s *story) hold(client, holder string, token int64) int {
	op := s.ask(client)
	s.granted(op, holder, token)
	s.call(op, "release", true)
	return op
}

// all checks, by name.
var checks = map[string]func(History) error{
	"exclusion": Exclusion,
	"tokens":    Tokens,
	"resource":  Resource,
	"liveness":  func(h History) error { return Liveness(h, 10*ms) },
	"linear":    func(h History) error { return Linear(h, 10*time.Second) },
}

// Every history is rejected by the checks named, for the reason in it, and accepted by all others.
func TestCheckersReject(t *testing.T) {
	for _, tt := range []struct {
		name, rejected string
		tell           func(s *story)
	}{
		{"nothing", "", func(*story) {}},
		{"one after the other", "", func(s *story) {
			s.hold("a", "a:1", 1)
			s.hold("b", "b:1", 2)
		}},
		{"two at once", "exclusion linear", func(s *story) {
			a, b := s.ask("a"), s.ask("b")
			s.granted(a, "a:1", 1)
			s.granted(b, "b:1", 2)
			s.call(a, "release", true)
			s.call(b, "release", true)
		}},
		{"a grant before the other's end", "exclusion linear", func(s *story) {
			a := s.ask("a")
			s.granted(a, "a:1", 1)
			s.hold("b", "b:1", 2)
			s.tell(Ended, a)
		}},
		{"who never stops believing", "exclusion linear", func(s *story) {
			s.granted(s.ask("a"), "a:1", 1)
			s.hold("b", "b:1", 2)
		}},
		{"who believes after the end", "exclusion linear", func(s *story) {
			a := s.ask("a")
			s.granted(a, "a:1", 1)
			s.tell(Ended, a)
			b := s.ask("b")
			s.granted(b, "b:1", 2)
			s.tell(Believed, a)
			s.call(b, "release", true)
		}},
		{"a lease that expired", "", func(s *story) {
			a := s.ask("a")
			s.granted(a, "a:1", 1)
			s.tell(Ended, a)
			s.hold("b", "b:1", 2)
			s.call(a, "release", false)
		}},
		{"other names", "", func(s *story) {
			a := s.ask("a")
			s.granted(a, "a:1", 2)
			op := s.Ask(s.tick(), "b", "y", "acquire", false)
			s.Record(Event{At: s.tick(), Kind: Granted, Op: op, Name: "y", Holder: "b:1", Token: 1})
			s.call(op, "release", true)
			s.call(a, "release", true)
		}},
		{"a smaller token later", "tokens", func(s *story) {
			s.hold("a", "a:1", 2)
			s.hold("b", "b:1", 1)
		}},
		{"the same token twice", "tokens", func(s *story) {
			s.hold("a", "a:1", 2)
			s.hold("b", "b:1", 2)
		}},
		{"no token", "tokens", func(s *story) {
			s.hold("a", "a:1", 0)
			s.hold("b", "b:1", 2)
		}},
		{"tokens in the order of the nodes", "exclusion linear", func(s *story) {
			// The later one was told first.
			a, b := s.ask("a"), s.ask("b")
			s.voted("1", "a:1")
			s.voted("2", "a:1")
			s.voted("2", "b:1")
			s.voted("3", "b:1")
			s.granted(b, "b:1", 2)
			s.granted(a, "a:1", 1)
			s.call(b, "release", true)
			s.call(a, "release", true)
		}},
		{"tokens against the order of the nodes", "exclusion linear tokens", func(s *story) {
			a, b := s.ask("a"), s.ask("b")
			s.voted("1", "a:1")
			s.voted("2", "a:1")
			s.voted("2", "b:1")
			s.voted("3", "b:1")
			s.granted(b, "b:1", 1)
			s.granted(a, "a:1", 2)
			s.call(b, "release", true)
			s.call(a, "release", true)
		}},
		{"an old write that was refused", "", func(s *story) {
			a := s.ask("a")
			s.granted(a, "a:1", 1)
			s.tell(Ended, a)
			b := s.ask("b")
			s.granted(b, "b:1", 2)
			s.wrote(b, true)
			s.wrote(a, false)
			s.wrote(b, true)
			s.call(b, "release", true)
		}},
		{"an old write that was taken", "resource", func(s *story) {
			a := s.ask("a")
			s.granted(a, "a:1", 1)
			s.tell(Ended, a)
			b := s.ask("b")
			s.granted(b, "b:1", 2)
			s.wrote(b, true)
			s.wrote(a, true)
			s.call(b, "release", true)
		}},
		{"who got it after all was healed", "", func(s *story) {
			op := s.Ask(s.tick(), "a", "x", "acquire", true)
			s.now += time.Hour
			s.Record(Event{At: s.tick(), Kind: Healed})
			s.granted(op, "a:1", 1)
			s.call(op, "release", true)
		}},
		{"who waits for ever", "liveness", func(s *story) {
			s.Ask(s.tick(), "a", "x", "acquire", true)
			s.Record(Event{At: s.tick(), Kind: Healed})
		}},
		{"who is told no", "liveness", func(s *story) {
			op := s.Ask(s.tick(), "a", "x", "acquire", true)
			s.Record(Event{At: s.tick(), Kind: Healed})
			s.tell(Unknown, op)
		}},
		{"who waits too long", "liveness", func(s *story) {
			op := s.Ask(s.tick(), "a", "x", "acquire", true)
			s.Record(Event{At: s.tick(), Kind: Healed})
			s.now += 10 * ms
			s.granted(op, "a:1", 1)
			s.call(op, "release", true)
		}},
		{"nested holds", "", func(s *story) {
			outer := s.ask("a")
			s.granted(outer, "a:1", 1)
			inner := s.ask("a")
			s.granted(inner, "a:1", 1)
			s.call(inner, "release", true)
			s.call(outer, "renew", true)
			s.call(outer, "release", true)
			s.hold("b", "b:1", 2)
		}},
		{"a nested hold that outlives the outer one", "exclusion linear", func(s *story) {
			outer := s.ask("a")
			s.granted(outer, "a:1", 1)
			inner := s.ask("a")
			s.granted(inner, "a:1", 1)
			s.call(outer, "release", true)
			s.hold("b", "b:1", 2)
			s.call(inner, "release", true)
		}},
		{"a renewal of a lock that another had", "linear", func(s *story) {
			// Its holder had stopped believing, so the intervals do not overlap.
			a := s.ask("a")
			s.granted(a, "a:1", 1)
			s.tell(Ended, a)
			s.hold("b", "b:1", 2)
			s.call(a, "renew", true)
		}},
		{"an unknown acquire that holds up nobody", "", func(s *story) {
			s.tell(Unknown, s.ask("a"))
			s.hold("b", "b:1", 1)
			s.tell(Unknown, s.ask("a"))
			s.hold("c", "c:1", 2)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s story
			tt.tell(&s)
			for name, check := range checks {
				err, want := check(s.History()), strings.Contains(tt.rejected, name)
				if (err != nil) != want {
					t.Errorf("%s says %v, rejected: %v\n%s", name, err, want, s.History())
				}
			}
		})
	}
}

// A check that does not come to an end has not found anything right. Two hold the lock, and before the checker may say
// so it has to try all subsets of the forty nested holds that the first of them took meanwhile, which no machine does.
func TestLinearGivesUp(t *testing.T) {
	var s story
	s.granted(s.ask("a"), "a:1", 1)
	var nested []int
	for range 40 {
		nested = append(nested, s.ask("a"))
	}
	s.granted(s.ask("b"), "b:1", 2)
	for _, op := range nested {
		s.granted(op, "a:1", 1)
	}
	if err := Linear(s.History(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not end") {
		t.Errorf("a check of 2⁴⁰ orders says %v, want that it did not end", err)
	}
}

// The order of events within a moment, and what only a reader wants to know, make no other history.
func TestHashIsOfWhatHappened(t *testing.T) {
	one := History{{At: 1, Kind: Ended, Op: 1}, {At: 1, Kind: Ended, Op: 2}, {At: 2, Kind: Unknown, Op: 3, Detail: "a"}}
	two := History{{At: 1, Kind: Ended, Op: 2}, {At: 1, Kind: Ended, Op: 1}, {At: 2, Kind: Unknown, Op: 3, Detail: "b"}}
	if one.Hash() != two.Hash() {
		t.Error("they happened at once, and have another hash")
	}
	two[2].At = 3
	if one.Hash() == two.Hash() {
		t.Error("another time has the same hash")
	}
}
