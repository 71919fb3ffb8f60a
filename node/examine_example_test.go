package node_test

import (
	"context"
	"fmt"
	"log"
	"time"
)

// What a node's clock shows lies between question and answer, so the difference to ours is known to that width.
func ExampleReading() {
	n, _, done := started()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	reading, err := n.Time(ctx)
	if err != nil {
		log.Fatal(err)
	}
	width := reading.Received.Sub(reading.Sent)
	fmt.Println("known to within", width > 0 && width < 5*time.Second)
	fmt.Println("about the same time:", time.Since(reading.Shown).Abs() < time.Minute)
	// Output:
	// known to within true
	// about the same time: true
}
