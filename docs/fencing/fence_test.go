package fencing

import (
	"database/sql"
	"errors"
	"slices"
	"testing"
)

func TestAnOlderTransactionWritesNothingAfterANewerOne(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		ok(t, db.sell(t.Context(), newer))
		refused(t, Transact(t.Context(), db.DB, lock, older, func(*sql.Tx) error {
			t.Error("the work was begun")
			return nil
		}))
		if got, want := db.orders(t), []order{{initial, newer}}; !slices.Equal(got, want) {
			t.Errorf("orders %v, want %v", got, want)
		}
	})
}

func TestAHolderHasManyTransactions(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		for range 3 {
			ok(t, db.sell(t.Context(), newer))
		}
		want := []order{{initial, newer}, {initial - 1, newer}, {initial - 2, newer}}
		if got := db.orders(t); !slices.Equal(got, want) {
			t.Errorf("orders %v, want %v", got, want)
		}
	})
}

func TestLocksHaveFencesOfTheirOwn(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		nothing := func(*sql.Tx) error { return nil }
		ok(t, Transact(t.Context(), db.DB, "another lock", newer, nothing))
		ok(t, Transact(t.Context(), db.DB, lock, older, nothing))
		if got := db.fence(t); got != older {
			t.Errorf("the fence is at %d, want %d", got, older)
		}
	})
}

// A fence that has been raised refuses older holders before there is anything else to write.
func TestARaisedFenceRefusesBeforeTheFirstWrite(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		ok(t, db.sell(t.Context(), older))
		ok(t, Transact(t.Context(), db.DB, lock, newer, func(*sql.Tx) error { return nil }))
		refused(t, db.sell(t.Context(), older))
		ok(t, db.sell(t.Context(), newer))
		if got, want := db.orders(t), []order{{initial, older}, {initial - 1, newer}}; !slices.Equal(got, want) {
			t.Errorf("orders %v, want %v", got, want)
		}
	})
}

// Work that fails takes its token back with it: what was not written needs no fence.
func TestARollbackLowersTheFenceAgain(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		ok(t, db.sell(t.Context(), older))
		broken := errors.New("the work failed")
		if err := Transact(t.Context(), db.DB, lock, newer, func(*sql.Tx) error { return broken }); !errors.Is(err, broken) {
			t.Fatalf("got %v, want the error of the work", err)
		}
		if got := db.fence(t); got != older {
			t.Errorf("the fence is at %d, want %d", got, older)
		}
	})
}
