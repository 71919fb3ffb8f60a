package fencing

import (
	"database/sql"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// The statements that README.md warns of. Each test here shows the damage: were the tests of the right statements
// blind, these would be green as well.

// updateUnconditionally has no condition, whatever was read before it.
const updateUnconditionally = `UPDATE stock SET quantity = $1, token = $2 WHERE id = $3`

// readToken is what one looks at first, and then trusts.
const readToken = `SELECT token FROM stock WHERE id = $1`

// updateIfLess takes a holder's second write for a stale one.
const updateIfLess = `UPDATE stock SET quantity = $1, token = $2 WHERE id = $3 AND token < $2`

// deleteRow forgets the token together with the row.
const deleteRow = `DELETE FROM stock WHERE id = $1 AND token <= $2`

func TestLookingAtTheTokenFirstLetsAStaleWriteThrough(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		var last int64
		scan(t, db.QueryRowContext(t.Context(), readToken, item), &last)
		if last > older {
			t.Fatalf("the token is %d already", last)
		}
		ok(t, Update(t.Context(), db.DB, item, 9, newer)) // while the older holder is paused
		exec(t, db.DB, updateUnconditionally, 5, older, item)
		db.wantRow(t, 5, older) // the newer holder's write is gone
	})
}

// One transaction around the two helps where the database promises repeatable reads, or has one writer.
func TestLookingFirstInOneTransactionIsNotEnoughAtReadCommitted(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		tx := begin(t, db.DB)
		var last int64
		scan(t, tx.QueryRowContext(t.Context(), readToken, item), &last)
		err := Update(t.Context(), db.impatient, item, 9, newer)
		if db.oneWriter {
			if !busy(err) {
				t.Errorf("the newer holder did not have to wait: %v", err)
			}
			return
		}
		ok(t, err)
		_, err = tx.ExecContext(t.Context(), updateUnconditionally, 5, older, item)
		if db.snapshot {
			if !serializationFailure(err) {
				t.Errorf("got %v, want a serialization failure", err)
			}
			return
		}
		ok(t, err)
		ok(t, tx.Commit())
		db.wantRow(t, 5, older)
	})
}

func TestLessThanRefusesTheHoldersOwnSecondWrite(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		write := func(quantity int64) error {
			done, err := db.ExecContext(t.Context(), updateIfLess, quantity, newer, item)
			return accepted(done, err)
		}
		ok(t, write(9))
		refused(t, write(8))
		db.wantRow(t, 9, newer)
	})
}

func TestAFenceInATransactionOfItsOwnLetsAStaleWriteThrough(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		nothing := func(*sql.Tx) error { return nil }
		ok(t, Transact(t.Context(), db.DB, lock, older, nothing)) // accepted, and then paused
		ok(t, db.sell(t.Context(), newer))
		exec(t, db.DB, writeQuantity, initial+7, item)
		db.wantRow(t, initial+7, 0)
	})
}

// A fence that comes last keeps older holders from writing, but what was read before it is old.
func TestAFenceThatComesLastSellsAnItemTwice(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		tx := begin(t, db.DB)
		var quantity int64
		scan(t, tx.QueryRowContext(t.Context(), readQuantity, item), &quantity)

		// The older holder is not refused yet, and done before the newer one raises the fence.
		err := Transact(t.Context(), db.impatient, lock, older, func(tx *sql.Tx) error {
			return sell(t.Context(), tx, older)
		})
		if db.oneWriter {
			if !busy(err) {
				t.Errorf("the older holder did not have to wait: %v", err)
			}
			return
		}
		ok(t, err)

		_, err = tx.ExecContext(t.Context(), writeQuantity, quantity-1, item)
		if db.snapshot {
			if !serializationFailure(err) {
				t.Errorf("got %v, want a serialization failure", err)
			}
			return
		}
		ok(t, err)
		_, err = tx.ExecContext(t.Context(), insertOrder, item, quantity, newer)
		ok(t, err)
		ok(t, raise(t.Context(), tx, lock, newer))
		ok(t, tx.Commit())
		if got, want := db.orders(t), []order{{initial, older}, {initial, newer}}; !slices.Equal(got, want) {
			t.Errorf("orders %v, want %v", got, want)
		}
	})
}

// An older holder that the row has no reason to refuse yet writes after the newer one has read.
func TestReadingBeforeTheRowIsClaimedLosesASale(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		var quantity int64
		scan(t, db.QueryRowContext(t.Context(), readQuantity, item), &quantity)
		ok(t, Update(t.Context(), db.DB, item, initial-1, older))
		ok(t, Update(t.Context(), db.DB, item, quantity-1, newer))
		db.wantRow(t, initial-1, newer) // two sales, one item less
	})
}

// It does not wait for its turn, whatever its time limit: what it has read is old.
func TestSQLiteTurnsAwayATransactionThatWritesAfterItRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openSQLite(t, path)
	deferred := open(t, "sqlite", sqliteDSN(path, "deferred", patience))
	tx := begin(t, deferred)
	var quantity int64
	ok(t, tx.QueryRowContext(t.Context(), readQuantity, item).Scan(&quantity))
	ok(t, db.sell(t.Context(), newer))
	if _, err := tx.ExecContext(t.Context(), writeQuantity, quantity-1, item); !busy(err) {
		t.Errorf("got %v, want SQLITE_BUSY", err)
	}
}

// A token belongs to what was read under its lease. A process that asks for its present token when it writes puts a
// fresh one on stale work.
func TestATokenThatIsReadLateLetsStaleWorkThrough(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		process := struct{ token int64 }{older} // its present one
		var quantity int64
		scan(t, db.QueryRowContext(t.Context(), readQuantity, item), &quantity)

		ok(t, Update(t.Context(), db.DB, item, initial-1, newer)) // another process, after the lease was lost
		process.token = newer + 1                                 // and the first one again, for other work

		ok(t, Update(t.Context(), db.DB, item, quantity-1, process.token))
		db.wantRow(t, initial-1, newer+1) // two sales, one item less
	})
}

func TestADeletedRowForgetsTheNewerToken(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		ok(t, Put(t.Context(), db.DB, item, 9, newer))
		exec(t, db.DB, deleteRow, item, newer)
		ok(t, Put(t.Context(), db.DB, item, 5, older))
		db.wantRow(t, 5, older)
	})
}

// In 32 bits a later token can be the smaller one.
func TestATruncatedTokenTurnsTheOrderRound(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		before := older&^math.MaxUint32 + math.MaxInt32
		after := before + 1
		ok(t, Update(t.Context(), db.DB, item, 8, int64(int32(before)))) // it writes, pauses, and its lease is lost
		refused(t, Update(t.Context(), db.DB, item, 9, int64(int32(after))))
		ok(t, Update(t.Context(), db.DB, item, 7, int64(int32(before))))
	})
}

// PostgreSQL's INTEGER has 32 bits, and says so; its REAL has 24, and does not. SQLite's have 64 and 53.
func TestColumnsThatAreTooNarrow(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		exec(t, db.DB, `CREATE TABLE narrow (whole INTEGER, floating REAL)`)
		insert := func(column string, token int64) error {
			_, err := db.ExecContext(t.Context(), `INSERT INTO narrow (`+column+`) VALUES ($1)`, token)
			return err
		}
		if err := insert("whole", older); (err == nil) != db.oneWriter {
			t.Errorf("a token in an INTEGER: %v", err)
		}
		ok(t, insert("floating", older))
		ok(t, insert("floating", newer))
		var different int
		scan(t, db.QueryRowContext(t.Context(), `SELECT count(DISTINCT floating) FROM narrow`), &different)
		if want := map[bool]int{true: 2, false: 1}[db.oneWriter]; different != want {
			t.Errorf("two tokens in a REAL are %d, want %d", different, want)
		}
	})
}
