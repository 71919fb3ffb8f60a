package fencing

import (
	"errors"
	"testing"
)

func TestAnOlderHolderIsRefusedOnceANewerOneWrote(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		ok(t, Update(t.Context(), db.DB, item, 9, newer))
		refused(t, Update(t.Context(), db.DB, item, 5, older))
		refused(t, Put(t.Context(), db.DB, item, 5, older))
		db.wantRow(t, 9, newer)
	})
}

func TestAHolderWritesARowMoreThanOnce(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		for _, quantity := range []int64{9, 8, 8} { // also what is there already
			ok(t, Update(t.Context(), db.DB, item, quantity, newer))
			ok(t, Put(t.Context(), db.DB, item, quantity, newer))
		}
		db.wantRow(t, 8, newer)
	})
}

// An update cannot tell a missing row from a newer token; an upsert need not.
func TestAMissingRowIsMadeByTheUpsertAlone(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		exec(t, db.DB, `DELETE FROM stock`)
		refused(t, Update(t.Context(), db.DB, item, 9, newer))
		ok(t, Put(t.Context(), db.DB, item, 9, newer))
		refused(t, Put(t.Context(), db.DB, item, 5, older))
		db.wantRow(t, 9, newer)
	})
}

// What has not seen the newer token cannot refuse the older one. That is the limit of fencing, and why a new holder
// that must be alone from the start writes its token first.
func TestAnOlderHolderIsAcceptedUntilANewerOneWrote(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		ok(t, Update(t.Context(), db.DB, item, 5, older))
		ok(t, Update(t.Context(), db.DB, item, 9, newer))
		db.wantRow(t, 9, newer)
	})
}

func TestAClaimedRowRefusesOlderHoldersBeforeTheFirstWrite(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		for range 2 { // a holder may look again
			if quantity, err := Claim(t.Context(), db.DB, item, newer); err != nil || quantity != initial {
				t.Fatalf("claimed %d, %v; want %d", quantity, err, initial)
			}
		}
		refused(t, Update(t.Context(), db.DB, item, 5, older))
		if _, err := Claim(t.Context(), db.DB, item, older); !errors.Is(err, ErrStale) {
			t.Errorf("an older holder's claim: %v, want ErrStale", err)
		}
		ok(t, Update(t.Context(), db.DB, item, initial-1, newer))
		db.wantRow(t, initial-1, newer)
	})
}
