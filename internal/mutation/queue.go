package main

// queueVariants break how requests share round trips.
var queueVariants = []variant{
	{
		name: "nobody shares a round trip",
		rule: "requests of all goroutines to one node share round trips",
		file: "node/queue.go",
		old:  `n := min(len(q.waiting), mostTogether)`, new: `n := min(len(q.waiting), 1)`,
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
		old:  `ctx := context.Background()`, new: `ctx := leader.ctx`,
		caught: []string{"node.TestCallersThatLeaveHoldUpNobody"},
	},
	{
		name: "the first to come leads a batch",
		rule: "a request keeps its own deadline, whoever shares its round trip",
		file: "node/queue.go",
		old:  `if c.outlasts(leader) {`, new: `if false {`,
		caught: []string{"node.TestLeaderOfABatchEndsAtItsOwnDeadline"},
	},
	{
		name: "left in a batch, and taking effect",
		rule: "what is written when nobody waits for it any more must do nothing",
		file: "node/run.go",
		old:  `last = 1 // long ago`, new: `_ = last`,
		caught: []string{"node.TestRequestLeftInABatchHasNoEffect"},
	},
	{
		name: "no last moment has passed",
		rule: "the zero Instant means any",
		file: "node/queue.go",
		old:  `!c.until.IsZero() && !c.node.clock`, new: `!c.node.clock`,
		caught: []string{"node.TestRequestWithoutALastMomentWaitsItsTurn"},
	},
}
