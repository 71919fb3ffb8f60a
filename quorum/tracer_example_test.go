package quorum_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"sync"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

// A chronicle is a tracer that is told everything, and keeps what it was told of.
type chronicle struct {
	mu     sync.Mutex
	events map[string]bool
}

// Every tracer is an AcquireTracer; these are the others.
var _ interface {
	quorum.AcquireTracer
	quorum.WaitTracer
	quorum.AttemptTracer
	quorum.HoldTracer
	quorum.ReleaseTracer
	quorum.RenewalTracer
	quorum.LossTracer
	quorum.VoteTracer
	quorum.NodeTracer
	quorum.CoordinatorTracer
} = (*chronicle)(nil)

func (c *chronicle) note(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events == nil {
		c.events = make(map[string]bool)
	}
	c.events[event] = true
}

func (c *chronicle) TraceAcquireStart(ctx context.Context, d quorum.TraceAcquireStartData) context.Context {
	c.note("acquire 1: " + d.Op + " begins")
	return ctx
}

func (c *chronicle) TraceAcquireEnd(_ context.Context, d quorum.TraceAcquireEndData) {
	c.note(fmt.Sprint("acquire 3: ends with ", d.Err))
}

func (c *chronicle) TraceWaitStart(ctx context.Context, _ quorum.TraceWaitStartData) context.Context {
	c.note("wait")
	return ctx
}

func (c *chronicle) TraceWaitEnd(context.Context, quorum.TraceWaitEndData) {}

func (c *chronicle) TraceAttempt(_ context.Context, d quorum.TraceAttemptData) {
	c.note(fmt.Sprint("acquire 2: an attempt ends with ", d.Err))
}

func (c *chronicle) TraceHoldStart(ctx context.Context, d quorum.TraceHoldStartData) context.Context {
	c.note("hold 1: of " + d.Lease.Name() + " begins")
	return ctx
}

func (c *chronicle) TraceHoldEnd(_ context.Context, d quorum.TraceHoldEndData) {
	c.note(fmt.Sprint("hold 4: ends, lost: ", d.Loss))
}

func (c *chronicle) TraceReleaseStart(ctx context.Context, d quorum.TraceReleaseStartData) context.Context {
	c.note("hold 3: " + d.Lease.Name() + " is given back")
	return ctx
}

func (c *chronicle) TraceReleaseEnd(_ context.Context, d quorum.TraceReleaseEndData) {
	c.note(fmt.Sprint("hold 5: given back, with ", d.Err))
}

func (c *chronicle) TraceRenewal(_ context.Context, d quorum.TraceRenewalData) {
	c.note(fmt.Sprint("hold 2: renewed, asked for: ", d.Asked))
}

func (c *chronicle) TraceLoss(d quorum.TraceLossData) {
	c.note("lost: " + d.Loss.String())
}

func (c *chronicle) TraceVote(d quorum.TraceVoteData) {
	if d.Op == "acquire" && d.Vote.Outcome == quorum.Granted {
		c.note("a node granted it")
	}
}

func (c *chronicle) TraceNode(d quorum.TraceNodeData) {
	if d.Was == quorum.NodeUntried && d.Condition == quorum.NodeAnswering {
		c.note("a node answered, for the first time")
	}
}

func (c *chronicle) TraceOpen(*quorum.Coordinator)  { c.note("a coordinator 1: is there") }
func (c *chronicle) TraceClose(*quorum.Coordinator) { c.note("a coordinator 2: is gone") }

// What is told of one lock, from beginning to end.
func ExampleCoordinatorTracer() {
	nodes, err := embedded.Start(5)
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	told := &chronicle{}
	locks, err := quorum.Open(quorum.Config{Tracer: told}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lease, err := locks.TryAcquire(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	_ = lease.Renew(ctx)
	_ = lease.Release(ctx)
	_ = locks.Close()

	for _, event := range slices.Sorted(maps.Keys(told.events)) {
		fmt.Println(event)
	}
	// Output:
	// a coordinator 1: is there
	// a coordinator 2: is gone
	// a node answered, for the first time
	// a node granted it
	// acquire 1: try-acquire begins
	// acquire 2: an attempt ends with <nil>
	// acquire 3: ends with <nil>
	// hold 1: of stock begins
	// hold 2: renewed, asked for: true
	// hold 3: stock is given back
	// hold 4: ends, lost: none
	// hold 5: given back, with <nil>
}

// Why a lease was lost, as a tracer is told.
func ExampleLoss() {
	for _, why := range []quorum.Loss{quorum.LossNotRenewed, quorum.LossOutvoted, quorum.LossLeaseTime, quorum.LossMaxHold, quorum.LossRevoked} {
		fmt.Println(why)
	}
	// Output:
	// not-renewed
	// outvoted
	// lease-time
	// max-hold
	// revoked
}

// How the nodes are, as far as requests have shown it.
func ExampleCondition() {
	locks, done := open()
	defer done()

	var stats quorum.Stats = locks.Stats()      //nolint:staticcheck // to show the type
	var first quorum.NodeStats = stats.Nodes[0] //nolint:staticcheck // to show the type
	fmt.Println("before the first request:", first.Condition)
	var worst quorum.Condition
	if _, err := locks.Inspect(context.Background(), "stock"); err != nil {
		log.Fatal(err)
	}
	for _, n := range locks.Stats().Nodes {
		worst = max(worst, n.Condition)
	}
	fmt.Println("the worst after it:", worst)
	// Output:
	// before the first request: untried
	// the worst after it: answering
}
