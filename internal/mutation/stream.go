package main

// streamVariants break how requests share a connection.
var streamVariants = []variant{
	{
		name: "nobody shares a round trip",
		rule: "requests of all goroutines to one node share round trips",
		file: "node/stream.go",
		old:  `n := min(len(s.waiting), mostTogether)`, new: `n := min(len(s.waiting), 1)`,
		caught: []string{"node.TestRequestsShareRoundTrips"},
	},
	{
		name: "expired in the queue, and sent",
		rule: "requests that expired in the queue are not sent",
		file: "node/stream.go",
		old:  `if c.waited && !c.Until.IsZero() && !now.Before(c.Until) {`, new: `if false {`,
		caught: []string{"node.TestRequestThatExpiresInTheQueueIsNotSent"},
	},
	{
		name: "a queue without end",
		rule: "a bounded queue; a hung node does not grow memory",
		file: "node/stream.go",
		old:  `case len(s.waiting) >= mostWaiting:`, new: `case false:`,
		caught: []string{"node.TestFullQueueRefuses"},
	},
	{
		name: "its time is up, and it is left in the queue",
		rule: "what waits leaves the queue at its own deadline, and was never sent",
		file: "node/stream.go",
		old:  `s.waiting = slices.DeleteFunc(s.waiting,`, new: `_ = slices.DeleteFunc(slices.Clone(s.waiting),`,
		caught: []string{"node.TestRequestThatWaitsInVainIsNotSent"},
	},
	{
		name: "given up under way",
		rule: "a cancellation ends it only while nothing was sent",
		file: "node/stream.go",
		old:  "	case flying:\n		return false\n", new: "	case flying:\n",
		caught: []string{"node.TestCancellationEndsOnlyWhatWasNotSent"},
	},
	{
		name: "the first deadline ends all",
		rule: "a request keeps its own deadline, whoever shares its round trip",
		file: "node/stream.go",
		old:  `if !alive {`, new: `if true {`,
		caught: []string{"node.TestRequestsOfABatchEndAtTheirOwnDeadlines"},
	},
	{
		name: "a connection outlives what was given up on it",
		rule: "when nobody waits any longer for anything that is under way, the connection is reset",
		file: "node/stream.go",
		old:  `if !alive {`, new: `if false {`,
		caught: []string{"node.TestRunEndsAtItsDeadline"},
	},
	{
		name: "left in the queue, and taking effect",
		rule: "what is cancelled while it waits is never sent",
		file: "node/stream.go",
		old:  `s.waiting = slices.Delete(s.waiting, i, i+1)`, new: `_ = i`,
		caught: []string{"node.TestRequestLeftInTheQueueHasNoEffect"},
	},
	{
		name: "no last moment has passed",
		rule: "the zero Instant means any",
		file: "node/stream.go",
		old:  `c.waited && !c.Until.IsZero() && !now`, new: `c.waited && !now`,
		caught: []string{"node.TestRequestWithoutALastMomentWaitsItsTurn"},
	},
	{
		name: "lost with a connection that was closed before",
		rule: "what was not written at all goes out over the next connection",
		file: "node/stream.go",
		old:  `case n == 0 && !c.resent && !s.closed:`, new: `case false:`,
		caught: []string{"node.TestRequestOfWhichNothingWasWrittenGoesOutAgain"},
	},
	{
		name: "sent behind an overdue answer",
		rule: "who was sent behind it would wait in vain",
		file: "node/link.go",
		old:  ` || len(l.flying) > 0 && l.flying[0] == nil`, new: ``,
		caught: []string{"node.TestNothingIsSentBehindAnOverdueAnswer"},
	},
	{
		name: "the answers in another order",
		rule: "its own answer",
		file: "node/link.go",
		old:  `l.got[i].call = c`, new: `l.got[n-1-i].call = c`,
		caught: []string{"node.TestAnswersOfABatchAreEachOnesOwn"},
	},
}
