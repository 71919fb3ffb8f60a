package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

// report takes a Locker, so that a test can give it something else than a cluster.
func report(ctx context.Context, locks quorum.Locker) error {
	return locks.Do(ctx, "nightly-report", func(context.Context) error {
		fmt.Println("written")
		return nil
	})
}

// unlocked is a Locker for tests of what is done under a lock.
type unlocked struct{ quorum.Locker }

func (unlocked) Do(ctx context.Context, _ string, fn func(context.Context) error, _ ...quorum.Option) error {
	return fn(ctx)
}

// What only takes locks asks for a Locker.
func ExampleLocker() {
	fmt.Println(report(context.Background(), unlocked{}))

	locks, done := open()
	defer done()
	fmt.Println(report(context.Background(), locks))
	// Output:
	// written
	// <nil>
	// written
	// <nil>
}

// Options change one acquire: here, a lease that ends by itself, and no more than one attempt to get it.
func ExampleOption() {
	locks, done := open()
	defer done()
	ctx := context.Background()

	lease, err := locks.Acquire(ctx, "stock", quorum.WithLeaseTime(5*time.Second), quorum.WithWaitTime(0))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Remaining() <= 5*time.Second)
	_, err = locks.Acquire(ctx, "stock", quorum.WithWaitTime(0))
	fmt.Println(errors.Is(err, quorum.ErrNotAcquired))
	fmt.Println(lease.Release(ctx))
	// Output:
	// true
	// true
	// <nil>
}

// Two of three nodes are down: nobody knows who has the lock.
func ExampleQuorumError() {
	nodes, err := embedded.Start(3)
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	nodes.Stop(0)
	nodes.Stop(1)

	_, err = locks.TryAcquire(context.Background(), "stock")
	var votes *quorum.QuorumError
	if errors.As(err, &votes) {
		fmt.Println(votes.Op, votes.Name, "needs", votes.Need, "of", len(votes.Votes))
	}
	fmt.Println("others have it:", errors.Is(err, quorum.ErrNotAcquired))
	fmt.Println("nobody knows:", errors.Is(err, quorum.ErrNoQuorum))
	// Output:
	// try-acquire stock needs 2 of 3
	// others have it: false
	// nobody knows: true
}

// A vote says what one node did, and why it did nothing.
func ExampleVote() {
	nodes, err := embedded.Start(3)
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	held, err := locks.Acquire(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryAcquire(ctx, "stock")
	var refused *quorum.QuorumError
	if !errors.As(err, &refused) {
		log.Fatal(err)
	}
	ours := 0
	for _, v := range refused.Votes {
		if v.Outcome == quorum.Held && v.Holder == held.Holder() {
			ours++
		}
	}
	fmt.Println("a quorum of them names the holder:", ours >= refused.Need)
	fmt.Println("an error of the node's own:", errors.Is(err, node.ErrTimeout))
	fmt.Println(held.Release(ctx))
	// Output:
	// a quorum of them names the holder: true
	// an error of the node's own: false
	// <nil>
}

// The zero Outcome is that of a node which has not answered.
func ExampleOutcome() {
	var vote quorum.Vote
	fmt.Println(vote.Outcome)
	for _, o := range []quorum.Outcome{quorum.Granted, quorum.Held, quorum.Failed} {
		fmt.Println(o)
	}
	// Output:
	// unknown
	// granted
	// held
	// failed
}

// Who has it? Inspect asks and changes nothing.
func ExampleState() {
	locks, done := open()
	defer done()
	ctx := context.Background()

	lease, err := locks.Acquire(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	state, err := locks.Inspect(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(state.Name, "is", state.Verdict)
	fmt.Println("by us:", state.Holder == lease.Holder())
	fmt.Println("with our token:", state.Token == lease.Token())
	fmt.Println(lease.Release(ctx))
	// Output:
	// stock is held
	// by us: true
	// with our token: true
	// <nil>
}

// A node that is down has an error, and the others a view each.
func ExampleNodeState() {
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
	nodes.Stop(3)

	state, err := locks.Inspect(context.Background(), "stock")
	if err != nil {
		log.Fatal(err)
	}
	for i, n := range state.Nodes {
		fmt.Println(i, "answered:", n.Err == nil, "held:", n.Held)
	}
	// Output:
	// 0 answered: true held: false
	// 1 answered: true held: false
	// 2 answered: true held: false
	// 3 answered: false held: false
	// 4 answered: true held: false
}

// A verdict is that of a quorum; where there is none, nobody knows.
func ExampleVerdict() {
	locks, done := open()
	defer done()

	state, err := locks.Inspect(context.Background(), "stock")
	switch {
	case err != nil:
		log.Fatal(err)
	case state.Verdict == quorum.VerdictFree:
		fmt.Println("nobody is at it")
	}
	fmt.Println(quorum.State{}.Verdict)
	// Output:
	// nobody is at it
	// unknown
}
