package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Tokens as a lease has them: microseconds since 1970.
const (
	older = int64(1_790_000_000_000_000)
	newer = older + 1
)

// item is the row of stock that the tests fight over, lock what guards it.
const (
	item    = "bolt"
	lock    = "stock/bolt"
	initial = 1000
)

// database is one that a test runs against, with the tables and the row.
type database struct {
	*sql.DB
	// impatient is the same database, with connections that do not wait for another writer where the patient ones do
	// (SQLite; a PostgreSQL transaction waits for a row, and nothing of it is tested that way).
	impatient *sql.DB
	// oneWriter: BEGIN itself waits for every other transaction.
	oneWriter bool
	// snapshot: a transaction sees what was there at its first statement, and fails with 40001 where it would write
	// what has changed since.
	snapshot bool
	// blocked says whether a connection waits for another one; nil where the connection itself says so.
	blocked func(t *testing.T, pid int) bool
}

// each runs a test against every database, at every isolation level that it has.
func each(t *testing.T, test func(t *testing.T, db *database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, openSQLite(t, filepath.Join(t.TempDir(), "test.db"))) })
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run("postgres/"+isolation, func(t *testing.T) { test(t, openPostgres(t, isolation)) })
	}
}

func openSQLite(t *testing.T, path string) *database {
	t.Helper()
	// A transaction that is going to write says so at once: one that finds out later is turned away, since what it has
	// read is old by then.
	const locking = "immediate"
	db := &database{
		DB:        open(t, "sqlite", sqliteDSN(path, locking, 2*patience)),
		impatient: open(t, "sqlite", sqliteDSN(path, locking, 0)),
		oneWriter: true,
	}
	db.create(t)
	return db
}

func sqliteDSN(path, locking string, wait time.Duration) string {
	const format = "file:%s?_txlock=%s&_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)"
	return fmt.Sprintf(format, path, locking, wait.Milliseconds())
}

var schemas atomic.Int64

func openPostgres(t *testing.T, isolation string) *database {
	t.Helper()
	server := postgres.Get(t)
	schema := fmt.Sprintf("test%d", schemas.Add(1))
	dsn := fmt.Sprintf("%s search_path=%s default_transaction_isolation='%s'", server.DSN(), schema, isolation)
	db := &database{DB: open(t, "pgx", dsn), snapshot: isolation != "read committed"}
	db.impatient = db.DB
	monitor := open(t, "pgx", server.DSN())
	db.blocked = func(t *testing.T, pid int) (blocked bool) {
		t.Helper()
		scan(t, monitor.QueryRowContext(t.Context(), `SELECT cardinality(pg_blocking_pids($1)) > 0`, pid), &blocked)
		return blocked
	}
	exec(t, db.DB, "CREATE SCHEMA "+schema)
	db.create(t)
	return db
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	ok(t, err)
	t.Cleanup(func() { ok(t, db.Close()) })
	return db
}

func (db *database) create(t *testing.T) {
	t.Helper()
	for _, table := range []string{createStock, createFences, createOrders} {
		exec(t, db.DB, table)
	}
	exec(t, db.DB, `INSERT INTO stock (id, quantity) VALUES ($1, $2)`, item, initial)
}

// reset makes the database what it was at first.
func (db *database) reset(t *testing.T) {
	t.Helper()
	exec(t, db.DB, `DELETE FROM fences`)
	exec(t, db.DB, `DELETE FROM orders`)
	exec(t, db.DB, `UPDATE stock SET quantity = $1, token = 0`, initial)
}

// row is what the item's row says.
func (db *database) row(t *testing.T) (quantity, token int64) {
	t.Helper()
	scan(t, db.QueryRowContext(t.Context(), `SELECT quantity, token FROM stock WHERE id = $1`, item), &quantity, &token)
	return quantity, token
}

func (db *database) wantRow(t *testing.T, quantity, token int64) {
	t.Helper()
	if q, k := db.row(t); q != quantity || k != token {
		t.Errorf("the row has quantity %d and token %d, want %d and %d", q, k, quantity, token)
	}
}

// fence is the token in the lock's fence.
func (db *database) fence(t *testing.T) (token int64) {
	t.Helper()
	scan(t, db.QueryRowContext(t.Context(), `SELECT token FROM fences WHERE name = $1`, lock), &token)
	return token
}

// order is a row of the table of orders.
type order struct{ item, token int64 }

// orders are the orders in the sequence of their sales: the items are sold from the top of the pile.
func (db *database) orders(t *testing.T) (orders []order) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT item, token FROM orders ORDER BY item DESC, token`)
	ok(t, err)
	defer rows.Close()
	for rows.Next() {
		var o order
		ok(t, rows.Scan(&o.item, &o.token))
		orders = append(orders, o)
	}
	ok(t, rows.Err())
	return orders
}

// sell sells one item behind the fence.
func (db *database) sell(ctx context.Context, token int64) error {
	return Transact(ctx, db.DB, lock, token, func(tx *sql.Tx) error { return sell(ctx, tx, token) })
}

// sell is the work that the lock is there for: look, and write what follows from it into two tables.
func sell(ctx context.Context, tx *sql.Tx, token int64) error {
	var quantity int64
	if err := tx.QueryRowContext(ctx, readQuantity, item).Scan(&quantity); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, writeQuantity, quantity-1, item); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, insertOrder, item, quantity, token)
	return err
}

// busy recognizes SQLite's answer to a writer that is not to wait.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
}

// begin begins a transaction that ends with the test, if not before.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	ok(t, err)
	t.Cleanup(func() { _ = tx.Rollback() }) // after a commit it says that there is none
	return tx
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", strings.Join(strings.Fields(statement), " "), err)
	}
}

func scan(t *testing.T, row *sql.Row, to ...any) {
	t.Helper()
	ok(t, row.Scan(to...))
}
