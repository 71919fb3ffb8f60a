package main

// queueVariants break how requests share round trips.
var queueVariants = []variant{
	{
		name: "nobody shares a round trip",
		rule: "requests of all goroutines to one node share round trips",
		file: "node/queue.go",
		old:  `n := min(len(q.waiting), mostTogether-1)`, new: `n := min(len(q.waiting), 0)`,
		caught: []string{"node.TestRequestsShareRoundTrips"},
	},
	{
		name: "expired in the queue, and sent",
		rule: "requests that expired in the queue are not sent",
		file: "node/queue.go",
		old:  `if !c.until.IsZero() && !c.node.clock.Now().Before(c.until) {`, new: `if false {`,
		caught: []string{"node.TestRequestThatExpiresInTheQueueIsNotSent"},
	},
	{
		name: "a queue without end",
		rule: "a bounded queue; a hung node does not grow memory",
		file: "node/queue.go",
		old:  `case len(q.waiting) >= mostWaiting:`, new: `case false:`,
		caught: []string{"node.TestFullQueueRefuses"},
	},
	{
		name: "given up and left in the queue",
		rule: "what waits leaves the queue at its own deadline, and was never sent",
		file: "node/queue.go",
		old:  `if i := slices.Index(q.waiting, c); i >= 0 {`, new: `if i := slices.Index(q.waiting, c); i >= 0 && false {`,
		caught: []string{"node.TestRequestThatWaitsInVainIsNotSent"},
	},
	{
		name: "a batch ends with its leader's context",
		rule: "the context of one must not end the others' requests",
		file: "node/queue.go",
		old:  `context.WithDeadline(context.Background(), deadline)`, new: `context.WithDeadline(leader.ctx, deadline)`,
		caught: []string{"node.TestCallersThatLeaveHoldUpNobody"},
	},
}
