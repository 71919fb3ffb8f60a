package fencing

import (
	"context"
	"database/sql"
	"errors"
)

// Transact runs fn in a transaction that only the newest holder of a lock commits: name is the lock's, token and ctx
// are the lease's ([quorum.Lease.Token], [quorum.Lease.Context]).
//
// Where the database gives a transaction up because another one was faster, fn is run again, for as long as the lease
// lives. So fn does nothing that a rollback does not undo.
func Transact(ctx context.Context, db *sql.DB, name string, token int64, fn func(tx *sql.Tx) error) error {
	for {
		err := transact(ctx, db, name, token, fn)
		if !serializationFailure(err) || ctx.Err() != nil {
			return err
		}
	}
}

func transact(ctx context.Context, db *sql.DB, name string, token int64, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := raise(ctx, tx, name, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// raise is the first statement of the transaction: it waits until no other holder has one open, and what is read after
// it is what the last of them left.
func raise(ctx context.Context, tx *sql.Tx, name string, token int64) error {
	done, err := tx.ExecContext(ctx, raiseFence, name, token)
	return accepted(done, err)
}

// serializationFailure recognizes a transaction that did nothing, and may do it in the next try. The method is that of
// the errors of PostgreSQL's drivers.
func serializationFailure(err error) bool {
	var failed interface{ SQLState() string }
	return errors.As(err, &failed) && failed.SQLState() == "40001"
}
