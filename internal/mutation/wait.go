package main

// waitVariants break the rules of waiting: who is woken by what, in which order, and what a wait leaves behind.
var waitVariants = []variant{
	{
		name: "woken only by a quorum of announcements",
		rule: "a holder of {1,2,3} is never announced by 4 and 5, so neither alone would do",
		file: "quorum/line.go",
		old:  `if ln.free[i] || ln.announced[i] {`, new: `if ln.announced[i] {`,
		caught: []string{"quorum.TestWakeCountsNodesFoundFreeAndNodesThatAnnounced"},
	},
	{
		name: "a release during an attempt is forgotten",
		rule: "those that announced a release since it was sent",
		file: "quorum/line.go",
		old: `	for i, vote := range votes {
		ln.free[i] = vote.Outcome == Granted`,
		new: `	clear(ln.announced)
	for i, vote := range votes {
		ln.free[i] = vote.Outcome == Granted`,
		caught: []string{"quorum.TestReleaseDuringAnAttemptWakesTheWaiter"},
	},
	{
		name: "no second try after subscribing",
		rule: "subscribe, then try once more: what was announced before nobody heard",
		file: "quorum/wait.go",
		old: `			w.confirmed()
			continue`,
		new:    `			w.confirmed()`,
		caught: []string{"quorum.TestReleaseBeforeTheSubscriptionIsNotMissed"},
	},
	{
		name: "a lost message is waited for",
		rule: "a wake is a hint that may be lost",
		file: "quorum/wait.go",
		old:  `w.sleep(w.line.wake, w.pause(v, last))`, new: `w.sleep(w.line.wake, 0*w.pause(v, last))`,
		caught: []string{"quorum.TestWaiterWithoutAnyMessageStillGetsTheLock"},
	},
	{
		name: "the TTLs that were seen do not matter",
		rule: "until the TTLs that were seen allow a quorum",
		file: "quorum/wait.go",
		old:  `free := retryAfter(v.votes, w.c.need); free > 0`, new: `free := retryAfter(v.votes, w.c.need); free < 0`,
		caught: []string{"quorum.TestWaiterGetsALockWhoseTTLRanOut"},
	},
	{
		name: "one TTL that runs out is a quorum",
		rule: "the need-th smallest",
		file: "quorum/result.go",
		old:  `return free[need-1]`, new: `return free[0]`,
		caught: []string{"quorum.TestRetryAfterIsWhenAQuorumIsFree"},
	},
	{
		name: "a wake shortens the delay after a split vote",
		rule: "it would bring the contenders back together",
		file: "quorum/wait.go",
		old:  `w.sleep(nil, comeBack(`, new: `w.sleep(w.line.wake, comeBack(`,
		caught: []string{"quorum.TestWakeDoesNotShortenTheDelayOfASplitVote"},
	},
	{
		name: "outages end a wait",
		rule: "Acquire waits through outages",
		file: "quorum/attempt.go",
		old:  `v.hopeless = permanent > len(v.votes)-a.c.need ||`, new: `v.hopeless = permanent >= 0 ||`,
		caught: []string{"quorum.TestAcquireWaitsThroughAnOutage"},
	},
	{
		name: "errors that waiting cannot cure are waited for",
		rule: "more than N - quorum nodes answered errors that waiting cannot cure",
		file: "quorum/wait.go",
		old:  `case v.hopeless, slices`, new: `case slices`,
		caught: []string{"quorum.TestAcquireFailsAtOnceOnErrorsThatWaitingCannotCure"},
	},
	{
		name: "the last comes first",
		rule: "served in the order in which they came",
		file: "quorum/line.go",
		old:  `ln.waiters = append(ln.waiters, w)`, new: `ln.waiters = slices.Insert(ln.waiters, min(1, len(ln.waiters)), w)`,
		caught: []string{"quorum.TestWaitersOfOneProcessAreServedInOrder"},
	},
	{
		name: "all of the line talk to the nodes",
		rule: "only the head talks to the nodes",
		file: "quorum/wait.go",
		old:  `w.sleep(w.turn, 0); over != nil {`, new: `w.sleep(w.turn, 1); over != nil {`,
		caught: []string{"quorum.TestOnlyTheHeadOfALineTalksToTheNodes"},
	},
	{
		name: "subscriptions stay",
		rule: "the last one to leave ends the subscriptions",
		file: "quorum/line.go",
		old:  `		stop()` + "\n", new: `		_ = stop` + "\n",
		caught: []string{"quorum.TestWaiterIsWokenByTheRelease"},
	},
	{
		name: "an unanswered wait is not acquired",
		rule: "those that did cannot tell whether the lock is held",
		file: "quorum/result.go",
		old:  `if silent > len(votes)-c.need {`, new: `if silent > len(votes) {`,
		caught: []string{"quorum.TestWaitTimeEndsTheWaitWithTheLastWord"},
	},
	{
		name: "one node's release wakes",
		rule: "free and announced nodes reach a quorum",
		file: "quorum/line.go",
		old:  `if n >= ln.c.need && news {`, new: `if n >= 1 && news {`,
		caught: []string{"quorum.TestOnlyAQuorumOfReleasesWakesAWaiter"},
	},
	{
		name: "a rollback wakes",
		rule: "else losers of a split vote wake each other for ever",
		file: "quorum/line.go",
		old:  `case e.Payload == script.Free:`, new: `case e.Payload != "":`,
		caught: []string{"quorum.TestOnlyAQuorumOfReleasesWakesAWaiter"},
	},
	{
		name: "an announcement counts for ever",
		rule: "what was announced before it is sent, it will see for itself",
		file: "quorum/line.go",
		old: `	clear(ln.announced)
	clear(ln.free)`, new: `	clear(ln.free)`,
		caught: []string{"quorum.TestOnlyAQuorumOfReleasesWakesAWaiter"},
	},
	{
		name: "no attempt after a reconnect",
		rule: "the node may have announced something while we did not hear it",
		file: "quorum/line.go",
		old: `		ln.announced[i] = true
		ln.signalIfFree()
	case e.Payload`, new: `	case e.Payload`,
		caught: []string{"quorum.TestWaiterThatWasCutOffTriesWhenItListensAgain"},
	},
}
