package fencing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// behindTheFence is the transaction of Transact.
var behindTheFence = script{
	steps: []func(context.Context, *party) error{
		func(ctx context.Context, p *party) error { return raise(ctx, p.tx, lock, p.token) },
		func(ctx context.Context, p *party) error { return sell(ctx, p.tx, p.token) },
	},
	again: func(ctx context.Context, db *database, token int64) error { return db.sell(ctx, token) },
}

// byTheRow is an update of the row that carries its token, in a transaction that stays open. It writes the token as
// the quantity, to see whose it was.
var byTheRow = script{
	steps: []func(context.Context, *party) error{
		func(ctx context.Context, p *party) error {
			done, err := p.tx.ExecContext(ctx, updateRow, p.token, p.token, item)
			return accepted(done, err)
		},
	},
	again: func(ctx context.Context, db *database, token int64) error {
		return Update(ctx, db.DB, item, token, token)
	},
}

// orderOfMoves says of each move whether it is the older holder's.
type orderOfMoves []bool

func (o orderOfMoves) String() string {
	var s strings.Builder
	for _, old := range o {
		if old {
			s.WriteByte('o')
		} else {
			s.WriteByte('N')
		}
	}
	return s.String()
}

// nth is when a holder makes its n-th move.
func (o orderOfMoves) nth(old bool, n int) int {
	for i, who := range o {
		if who == old {
			if n == 0 {
				return i
			}
			n--
		}
	}
	panic(fmt.Sprintf("%v has fewer moves", o))
}

// everyOrder returns all ways to interleave two scripts.
func everyOrder(old, young int) (orders []orderOfMoves) {
	if old == 0 && young == 0 {
		return []orderOfMoves{nil}
	}
	for _, who := range []bool{true, false} {
		switch {
		case who && old > 0:
			for _, rest := range everyOrder(old-1, young) {
				orders = append(orders, append(orderOfMoves{who}, rest...))
			}
		case !who && young > 0:
			for _, rest := range everyOrder(old, young-1) {
				orders = append(orders, append(orderOfMoves{who}, rest...))
			}
		}
	}
	return orders
}

// outcome is what a party came to.
type outcome struct {
	waited bool // and was told by the database to try again
	err    error
}

// interleave runs the script for an older and a newer holder in the given order of their moves, and once more for whom
// the database told to try again.
func interleave(t *testing.T, db *database, s script, order orderOfMoves) (old, young outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	parties := map[bool]*party{
		true:  newParty(ctx, t, db, older, s.moves()),
		false: newParty(ctx, t, db, newer, s.moves()),
	}
	var playing errgroup.Group
	for old, p := range parties {
		p.rival = parties[!old]
	}
	for _, p := range parties {
		playing.Go(func() error { return p.play(ctx, s) })
	}
	for _, old := range order {
		parties[old].grant(ctx, t)
	}
	ok(t, playing.Wait())
	finish := func(p *party) outcome {
		if serializationFailure(p.err) {
			return outcome{true, s.again(ctx, db, p.token)}
		}
		return outcome{false, p.err}
	}
	// The older one last: it must be refused then, too.
	young = finish(parties[false])
	return finish(parties[true]), young
}

// check runs the script in every order. Whoever comes first to what both want is accepted; so the newer holder always
// is, and the older one if it came before.
func (s script) check(t *testing.T, db *database, before func(), want func(oldAccepted bool)) {
	t.Helper()
	wanted := 1 // the move after BEGIN takes the lock on the fence or the row
	if db.oneWriter {
		wanted = 0
	}
	for _, order := range everyOrder(s.moves(), s.moves()) {
		oldFirst := order.nth(true, wanted) < order.nth(false, wanted)
		// Who comes second while the first has not committed waits, and then finds that its snapshot is old.
		met := order.nth(!oldFirst, wanted) < order.nth(oldFirst, s.moves()-1)

		db.reset(t)
		before()
		old, young := interleave(t, db, s, order)
		if young.err != nil {
			t.Errorf("%v: the newer holder: %v", order, young.err)
		}
		if oldFirst && old.err != nil || !oldFirst && !errors.Is(old.err, ErrStale) {
			t.Errorf("%v: the older holder: %v", order, old.err)
		}
		if again := db.snapshot && met; old.waited != (again && !oldFirst) || young.waited != (again && oldFirst) {
			t.Errorf("%v: told to try again: older %v, newer %v", order, old.waited, young.waited)
		}
		want(oldFirst)
		if t.Failed() {
			t.Fatalf("in the order %v", order)
		}
	}
}

func TestTransactionsInEveryOrder(t *testing.T) {
	for name, fence := range map[string]func(*testing.T, *database){
		"the first of all": func(*testing.T, *database) {},
		"after others":     func(t *testing.T, db *database) { exec(t, db.DB, raiseFence, lock, older-1) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, db *database) {
				behindTheFence.check(t, db, func() { fence(t, db) }, func(oldAccepted bool) {
					want := []order{{initial, newer}}
					if oldAccepted {
						want = []order{{initial, older}, {initial - 1, newer}}
					}
					if got := db.orders(t); !slices.Equal(got, want) {
						t.Errorf("orders %v, want %v", got, want)
					}
					if got := db.fence(t); got != newer {
						t.Errorf("the fence is at %d, want %d", got, newer)
					}
					db.wantRow(t, initial-int64(len(want)), 0)
				})
			})
		})
	}
}

func TestUpdatesInEveryOrder(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		byTheRow.check(t, db, func() {}, func(bool) { db.wantRow(t, newer, newer) })
	})
}
