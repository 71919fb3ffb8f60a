package history

import (
	"strings"
	"testing"
)

// forced tells of a holder that is force-released, of another one that comes then, and of when the first one stops.
func forced(s *story, after int) History {
	first := s.ask("1")
	s.granted(first, "a", 1)
	s.Record(Event{At: s.tick(), Kind: Revoked, Name: "x", Holder: "a"})
	s.Record(Event{At: s.tick(), Kind: Freed, Name: "x", Holder: "a"})
	s.hold("2", "b", 2)
	for range after {
		s.tick()
	}
	s.tell(Believed, first)
	s.tell(Ended, first)
	s.Record(Event{At: s.tick(), Kind: Freed, Name: "x", Holder: "a"}) // on another node, later
	return s.History()
}

func TestForceReleasedHolderMayOverlapTheNext(t *testing.T) {
	h := forced(&story{}, 0)
	if err := Exclusion(h); err == nil {
		t.Error("the two do not overlap, and the test shows nothing")
	}
	for name, check := range checks {
		if err := check(h.Unforced()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nobody else may: what is excused is only the holder that was meant.
func TestOverlapWithoutAForceReleaseIsNotExcused(t *testing.T) {
	s := &story{}
	first := s.ask("1")
	s.granted(first, "a", 1)
	s.Record(Event{At: s.tick(), Kind: Freed, Name: "x", Holder: "somebody else"})
	s.hold("2", "b", 2)
	s.tell(Ended, first)
	if err := Exclusion(s.History().Unforced()); err == nil {
		t.Error("two holders")
	}
}

func TestRevokedHolderMayNotExtendItsLease(t *testing.T) {
	if err := Revocations(forced(&story{}, 0), 20*ms); err != nil {
		t.Error(err)
	}
	if err := Revocations(forced(&story{}, 100), 20*ms); err == nil || !strings.Contains(err.Error(), "a (token 1) was revoked at") {
		t.Errorf("got %v, want an error that names the holder", err)
	}
}
