package history

import (
	"errors"
	"fmt"
	"time"
)

// Exclusion checks that no two tenures of one name overlap, from the moment the client was told of the grant until it
// stopped believing.
func Exclusion(h History) error {
	var errs []error
	for _, group := range byName(h.tenures()) {
		var last *tenure // that ends latest of those before
		for _, t := range group {
			if last != nil && t.granted < last.ended {
				errs = append(errs, fmt.Errorf("%s was granted to %s (token %d) at %v, and %s (token %d) believed in it until %v",
					t.name, t.holder, t.token, t.granted, last.holder, last.token, last.ended))
			}
			if last == nil || t.ended > last.ended {
				last = t
			}
		}
	}
	return errors.Join(errs...)
}

// Tokens checks that later holders have greater tokens, and no two the same.
func Tokens(h History) error {
	var errs []error
	for name, group := range byName(h.tenures()) {
		for i, a := range group {
			for _, b := range group[i+1:] {
				switch {
				case a.token <= 0:
					errs = append(errs, fmt.Errorf("%s: %s has token %d", name, a.holder, a.token))
				case a.token == b.token:
					errs = append(errs, fmt.Errorf("%s: %s and %s have both token %d", name, a.holder, b.holder, a.token))
				case a.token > b.token && a.before(b):
					errs = append(errs, fmt.Errorf("%s: %s has token %d, and %s after it %d", name, a.holder, a.token, b.holder, b.token))
				case b.token > a.token && b.before(a):
					errs = append(errs, fmt.Errorf("%s: %s has token %d, and %s after it %d", name, b.holder, b.token, a.holder, a.token))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// Resource checks that no write was taken from a holder after one from a later holder. It looks at the order of the
// holders, not at their tokens.
func Resource(h History) error {
	byOp := make(map[int]*tenure)
	for _, t := range h.tenures() {
		for op := range t.ops {
			byOp[op] = t
		}
	}
	var errs []error
	wrote := make(map[string][]*tenure)
	for _, e := range h {
		t := byOp[e.Op]
		if e.Kind != Wrote || !e.OK || t == nil {
			continue
		}
		known := false
		for _, other := range wrote[t.name] {
			if known = known || other == t; other != t && t.before(other) {
				errs = append(errs, fmt.Errorf("%s: at %v %s (token %d) wrote after the later %s (token %d)",
					t.name, e.At, t.holder, t.token, other.holder, other.token))
			}
		}
		if !known {
			wrote[t.name] = append(wrote[t.name], t)
		}
	}
	return errors.Join(errs...)
}

// Liveness checks that every patient client got its lock: within the time after everything was healed, or after it
// asked if that was later.
func Liveness(h History, within time.Duration) error {
	healed := never
	pending := make(map[int]Event)
	var errs []error
	late := func(a Event, until time.Duration) bool { return healed != never && until-max(a.At, healed) > within }
	for _, e := range h {
		switch e.Kind {
		case Healed:
			healed = e.At
		case Asked:
			if e.OK {
				pending[e.Op] = e
			}
		case Granted, Refused, Unknown:
			a, patient := pending[e.Op]
			delete(pending, e.Op)
			if patient && late(a, e.At) {
				errs = append(errs, fmt.Errorf("#%d of client %s waited for %s from %v until %v, and all was healed at %v",
					e.Op, a.Client, a.Name, a.At, e.At, healed))
			}
			if patient && e.Kind != Granted && healed != never {
				errs = append(errs, fmt.Errorf("#%d of client %s did not get %s although all was healed at %v: %s",
					e.Op, a.Client, a.Name, healed, e.Detail))
			}
		}
	}
	for op, a := range pending {
		if healed != never {
			errs = append(errs, fmt.Errorf("#%d of client %s has waited for %s since %v for ever", op, a.Client, a.Name, a.At))
		}
	}
	return errors.Join(errs...)
}
