package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

// open returns a coordinator over five nodes inside the process.
func open() (c *quorum.Coordinator, done func()) {
	nodes, err := embedded.Start(5)
	if err != nil {
		log.Fatal(err)
	}
	c, err = quorum.Open(quorum.Config{TTL: 10 * time.Second}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		_ = c.Close()
		nodes.Close()
	}
}

// Work that must not be done twice goes into Do. Its context ends when the lock is lost.
func ExampleCoordinator_Do() {
	locks, done := open()
	defer done()

	err := locks.Do(context.Background(), "invoice-4711", func(ctx context.Context) error {
		select {
		case <-time.After(time.Millisecond): // the work
			fmt.Println("sent")
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	fmt.Println(err)
	// Output:
	// sent
	// <nil>
}

// A try tells apart that others hold the lock and that too few nodes answered.
func ExampleCoordinator_TryAcquire() {
	locks, done := open()
	defer done()
	ctx := context.Background()

	lease, err := locks.TryAcquire(ctx, "nightly-report")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryAcquire(ctx, "nightly-report")
	var votes *quorum.QuorumError
	fmt.Println(errors.Is(err, quorum.ErrNotAcquired), errors.Is(err, quorum.ErrNoQuorum), errors.As(err, &votes))
	fmt.Println("need", votes.Need, "of", len(votes.Votes))
	fmt.Println(lease.Release(ctx))
	// Output:
	// true false true
	// need 3 of 5
	// <nil>
}

// A resource that remembers the highest token refuses whoever held the lock before.
func ExampleLease_Token() {
	locks, done := open()
	defer done()
	ctx := context.Background()

	var last int64
	write := func(token int64) bool {
		if token < last {
			return false
		}
		last = token
		return true
	}

	old, err := locks.Acquire(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	_ = old.Release(ctx)
	lease, err := locks.Acquire(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("new holder:", write(lease.Token()))
	fmt.Println("old holder, late:", write(old.Token()))
	fmt.Println("new holder, again:", write(lease.Token()))
	_ = lease.Release(ctx)
	// Output:
	// new holder: true
	// old holder, late: false
	// new holder, again: true
}

// Under the context of a lease the same name is held once more instead of being waited for.
func ExampleLease_Context() {
	locks, done := open()
	defer done()

	err := locks.Do(context.Background(), "account", func(ctx context.Context) error {
		return locks.Do(ctx, "account", func(context.Context) error {
			fmt.Println("held twice")
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// held twice
	// <nil>
}

// A Mutex takes the place of a sync.Mutex in a field.
func ExampleMutex() {
	locks, done := open()
	defer done()

	var account struct {
		sync.Locker
		balance int
	}
	account.Locker = locks.Mutex("account")

	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			account.Lock()
			defer account.Unlock()
			account.balance++
		})
	}
	wg.Wait()
	fmt.Println(account.balance)
	// Output: 3
}

// One of all processes leads at a time. Where it loses the lock its context ends, and it stands again.
func ExampleCoordinator_Campaign() {
	locks, done := open()
	defer done()

	err := locks.Campaign(context.Background(), "scheduler", func(ctx context.Context, term *quorum.Lease) error {
		fmt.Println("leading with a token:", term.Token() > 0)
		for job := range 3 {
			select {
			case <-time.After(time.Millisecond): // until the next job is due
				fmt.Println("job", job)
			case <-ctx.Done():
				return context.Cause(ctx) // lost: Campaign stands again
			}
		}
		return nil // resigns, and ends the campaign
	})
	fmt.Println(err)
	// Output:
	// leading with a token: true
	// job 0
	// job 1
	// job 2
	// <nil>
}

// What a user of the nodes has to be permitted who takes locks behind a prefix.
func ExampleACL() {
	rules, err := quorum.ACL("shop:")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(rules[:6], "\n"))
	fmt.Println("and", len(rules)-6, "commands")
	// Output:
	// ~shop:*
	// ~redquorum_fence:{shop:*
	// ~redquorum_revoked:{shop:*
	// ~redquorum_node
	// &redisson_lock__channel:{shop:*
	// &redisson_lock__channel:shop:*
	// and 22 commands
}
