package history

import (
	"errors"
	"fmt"
	"time"
)

// Revocations checks that no holder relied on its lease for longer than ttl after it was revoked for good: whatever was
// under way then may have extended it, and nothing after that.
func Revocations(h History, ttl time.Duration) error {
	revoked := make(map[string]time.Duration)
	for _, e := range h {
		if _, known := revoked[e.Holder]; e.Kind == Revoked && !known {
			revoked[e.Holder] = e.At
		}
	}
	var errs []error
	for _, t := range h.tenures() {
		if at, ok := revoked[t.holder]; ok && t.ended > at+ttl {
			errs = append(errs, fmt.Errorf("%s: %s (token %d) was revoked at %v and relied on its lease until %v, more than %v later",
				t.name, t.holder, t.token, at, t.ended, ttl))
		}
	}
	return errors.Join(errs...)
}

// Unforced returns the history as if every holder whose keys a force-release has deleted had stopped relying on its lease
// at that moment. From then on somebody else may have the lock: that is what a force-release is for.
func (h History) Unforced() History {
	freed := make(map[string]time.Duration)
	for _, e := range h {
		if _, known := freed[e.Holder]; e.Kind == Freed && !known {
			freed[e.Holder] = e.At
		}
	}
	if len(freed) == 0 {
		return h
	}
	holders := make(map[int]string) // by the op that was granted
	ended := make(map[int]bool)
	late := func(e Event) bool {
		at, ok := freed[holders[e.Op]]
		return ok && e.At > at
	}
	var out History
	end := func(holder string, at time.Duration) {
		for _, e := range h {
			if e.Kind == Granted && e.Holder == holder && e.At <= at && !ended[e.Op] {
				ended[e.Op] = true
				out = append(out, Event{At: at, Kind: Ended, Op: e.Op, Text: "force-released"})
			}
		}
	}
	for _, e := range h {
		switch e.Kind {
		case Freed:
			end(e.Holder, e.At)
		case Granted:
			holders[e.Op] = e.Holder
			if late(e) { // it learnt of its grant when that was over
				e.Kind = Unknown
			}
		case Believed, Call, Return:
			if late(e) {
				continue
			}
		case Ended:
			if ended[e.Op] || late(e) {
				continue
			}
			ended[e.Op] = true
		default:
		}
		out = append(out, e)
	}
	return out
}
