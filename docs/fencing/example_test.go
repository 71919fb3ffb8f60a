package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

// sellOne sells one item under a lock, in two tables.
func sellOne(ctx context.Context, locks *quorum.Coordinator, db *sql.DB, id string) error {
	name := "stock/" + id
	return locks.Do(ctx, name, func(ctx context.Context) error {
		token := quorum.LeaseFrom(ctx).Token()
		return Transact(ctx, db, name, token, func(tx *sql.Tx) error {
			var quantity int64
			if err := tx.QueryRowContext(ctx, readQuantity, id).Scan(&quantity); err != nil {
				return err
			}
			if quantity == 0 {
				return errors.New("sold out")
			}
			if _, err := tx.ExecContext(ctx, writeQuantity, quantity-1, id); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, insertOrder, id, quantity, token)
			return err
		})
	})
}

func Example() {
	nodes, err := embedded.Start(5)
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	dir, err := os.MkdirTemp("", "redquorum-fencing-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "stock.db")+"?_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{createStock, createFences, createOrders} {
		if _, err := db.Exec(statement); err != nil {
			log.Fatal(err)
		}
	}

	ctx := context.Background()
	fmt.Println("put:", Put(ctx, db, "bolt", 1, 1))
	fmt.Println("sell:", sellOne(ctx, locks, db, "bolt"))
	fmt.Println("sell:", sellOne(ctx, locks, db, "bolt"))
	fmt.Println("a holder from long ago:", Transact(ctx, db, "stock/bolt", 1, nil))
	// Output:
	// put: <nil>
	// sell: <nil>
	// sell: sold out
	// a holder from long ago: fencing: a newer holder of the lock has been here
}
