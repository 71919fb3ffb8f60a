package fencing

import (
	"context"
	"database/sql"
	"errors"
)

// ErrStale says that the resource has seen a newer token: the lock had another holder since, and nothing was written.
// Trying again does not help. Stop, and take the lock anew if the work is still to be done: from its beginning, since
// all that was read under the old lease may have changed.
var ErrStale = errors.New("fencing: a newer holder of the lock has been here")

// Update sets the quantity of a row that carries its token. ErrStale also stands for a row that does not exist.
func Update(ctx context.Context, db *sql.DB, id string, quantity, token int64) error {
	done, err := db.ExecContext(ctx, updateRow, quantity, token, id)
	return accepted(done, err)
}

// Put sets the quantity of a row that carries its token, and makes the row if there is none.
func Put(ctx context.Context, db *sql.DB, id string, quantity, token int64) error {
	done, err := db.ExecContext(ctx, upsertRow, quantity, token, id)
	return accepted(done, err)
}

// Claim reads the quantity of a row that carries its token. From then on older holders are refused, so what was read
// stays true for as long as there is no newer holder.
func Claim(ctx context.Context, db *sql.DB, id string, token int64) (quantity int64, err error) {
	err = db.QueryRowContext(ctx, claimRow, token, id).Scan(&quantity)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrStale
	}
	return quantity, err
}

// accepted tells whether a statement with the condition has found it true: then it has changed the one row that it is
// about.
func accepted(done sql.Result, err error) error {
	if err != nil {
		return err
	}
	rows, err := done.RowsAffected()
	if err != nil {
		return err
	}
	if rows == 0 {
		return ErrStale
	}
	return nil
}
