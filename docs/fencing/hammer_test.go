package fencing

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// hammer lets many holders write at once, in an order that nobody decides, and returns the tokens whose write was
// accepted. Each writes twice.
func hammer(t *testing.T, write func(token int64) error) (accepted map[int64]int, newest int64) {
	t.Helper()
	const holders = 64
	tokens := make(chan int64, holders)
	for _, n := range rand.Perm(holders) {
		tokens <- older + int64(n)
	}
	close(tokens)
	var mu sync.Mutex
	accepted = make(map[int64]int)
	var workers errgroup.Group
	for range 8 {
		workers.Go(func() error {
			for token := range tokens {
				for range 2 {
					err := write(token)
					if errors.Is(err, ErrStale) {
						continue
					}
					if err != nil {
						return err
					}
					mu.Lock()
					accepted[token]++
					mu.Unlock()
				}
			}
			return nil
		})
	}
	ok(t, workers.Wait())
	newest = older + holders - 1
	if accepted[newest] != 2 {
		t.Errorf("the newest holder wrote %d times, want 2", accepted[newest])
	}
	return accepted, newest
}

// sold checks what is true of every row of orders that were sold behind a fence: each item went once, to a holder that
// is not older than the one before.
func sold(t *testing.T, db *database) (orders []order) {
	t.Helper()
	orders = db.orders(t)
	for i, o := range orders {
		if o.item != initial-int64(i) {
			t.Fatalf("order %d is for item %d, want %d", i, o.item, initial-i)
		}
	}
	if !slices.IsSortedFunc(orders, func(a, b order) int { return int(a.token - b.token) }) {
		t.Errorf("an older holder sold after a newer one: %v", orders)
	}
	db.wantRow(t, initial-int64(len(orders)), 0)
	return orders
}

func TestManyTransactionsLeaveWhatTheNewestWrote(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		want, newest := hammer(t, func(token int64) error { return db.sell(t.Context(), token) })
		got := make(map[int64]int)
		for _, o := range sold(t, db) {
			got[o.token]++
		}
		for token, n := range want {
			if got[token] != n {
				t.Errorf("%d orders of %d, who was told that it sold %d", got[token], token, n)
			}
			delete(got, token)
		}
		if len(got) > 0 {
			t.Errorf("orders of holders that were refused: %v", got)
		}
		if fence := db.fence(t); fence != newest {
			t.Errorf("the fence is at %d, want %d", fence, newest)
		}
	})
}

func TestManyUpsertsLeaveWhatTheNewestWrote(t *testing.T) {
	each(t, func(t *testing.T, db *database) {
		exec(t, db.DB, `DELETE FROM stock`)
		_, newest := hammer(t, func(token int64) error {
			for {
				if err := Put(t.Context(), db.DB, item, token, token); !serializationFailure(err) {
					return err
				}
			}
		})
		db.wantRow(t, newest, newest)
	})
}
