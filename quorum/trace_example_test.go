package quorum_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

// doorman is a tracer that wants to know two things: how calls end, and that they had to wait.
type doorman struct{}

func (doorman) TraceAcquireStart(ctx context.Context, _ quorum.TraceAcquireStartData) context.Context {
	return ctx
}

func (doorman) TraceAcquireEnd(_ context.Context, data quorum.TraceAcquireEndData) {
	fmt.Println(data.Op, data.Name, "ended, got it:", data.Err == nil)
}

func (doorman) TraceWaitStart(ctx context.Context, data quorum.TraceWaitStartData) context.Context {
	fmt.Println(data.Name, "has to be waited for, calls before this one:", data.Place)
	return ctx
}

func (doorman) TraceWaitEnd(context.Context, quorum.TraceWaitEndData) {}

// A tracer implements AcquireTracer, and of the other interfaces those that it wants to be told of.
func ExampleAcquireTracer() {
	nodes, err := embedded.Start(5)
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{Tracer: doorman{}}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Acquire(context.Background(), "stock")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = locks.Acquire(ctx, "stock")
	}()
	for locks.Stats().Waiting == 0 {
		_ = lease.Renew(context.Background()) // whatever else there is to do
	}
	cancel()
	<-done
	// Output:
	// acquire stock ended, got it: true
	// stock has to be waited for, calls before this one: 0
	// acquire stock ended, got it: false
}

// What is held, who waits and how the nodes are, for a page that shows it.
func ExampleCoordinator_Stats() {
	locks, done := open()
	defer done()

	lease, err := locks.Acquire(context.Background(), "stock")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Release(context.Background()) }()

	stats := locks.Stats()
	answering := 0
	for _, n := range stats.Nodes {
		if n.Condition == quorum.NodeAnswering {
			answering++
		}
	}
	fmt.Println("held:", stats.Held, "waiting:", stats.Waiting)
	fmt.Println("enough nodes answer:", answering >= stats.Quorum)
	// Output:
	// held: 1 waiting: 0
	// enough nodes answer: true
}
