package quorum_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redquorum/redquorum/quorum"
)

// Which locks are held? Names finds candidates, and Inspect says what a quorum has.
func ExampleListing() {
	locks, done := open()
	defer done()
	ctx := context.Background()
	for _, name := range []string{"invoice-1", "invoice-2", "stock"} {
		if _, err := locks.Acquire(ctx, name); err != nil {
			log.Fatal(err)
		}
	}

	var found quorum.Listing
	found, err := locks.Names(ctx, "invoice-*", 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Names, "cut:", found.Cut)
	// Output: [invoice-1 invoice-2] cut: false
}

// A list is as good as the nodes that were looked through.
func ExampleNodeListing() {
	locks, done := open()
	defer done()

	found, err := locks.Names(context.Background(), "*", 100)
	if err != nil {
		log.Fatal(err)
	}
	whole := 0
	for _, n := range found.Nodes {
		if n.Whole && n.Err == nil {
			whole++
		}
	}
	fmt.Println(whole, "of", len(found.Nodes))
	// Output: 5 of 5
}
