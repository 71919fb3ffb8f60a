package main

// waitVariants break the rules of waiting: who is woken by what, in which order, and what a wait leaves behind.
var waitVariants = []variant{
	{
		name: "woken only by a quorum of announcements",
		rule: "a holder of {1,2,3} is never announced by 4 and 5, so neither alone would do",
		file: "quorum/wake.go",
		old:  `if ln.free[i] || ln.announced[i] {`, new: `if ln.announced[i] {`,
		caught: []string{"quorum.TestWakeCountsNodesFoundFreeAndNodesThatAnnounced"},
	},
	{
		name: "a release during an attempt is forgotten",
		rule: "those that announced a release since it was sent",
		file: "quorum/wake.go",
		old: `	for i, vote := range votes {
		ln.free[i] = vote.Outcome == Granted`,
		new: `	clear(ln.announced)
	for i, vote := range votes {
		ln.free[i] = vote.Outcome == Granted`,
		caught: []string{"quorum.TestReleaseDuringAnAttemptWakesTheWaiter"},
	},
	{
		name: "no second look after subscribing",
		rule: "subscribe, then look once more: what was announced before nobody heard",
		file: "quorum/wait.go",
		old: `			ln.awake()
			if w.free(lookout{count: true}) {`, new: `			ln.awake()
			if w.free(lookout{count: true}); false {`,
		caught: []string{"quorum.TestReleaseBeforeTheSubscriptionIsNotMissed"},
	},
	{
		name: "a lost message is waited for",
		rule: "a wake is a hint that may be lost",
		file: "quorum/wait.go",
		old:  `min(due.Sub(w.c.clock.Now()), w.poll(v, last))`, new: `due.Sub(w.c.clock.Now()) + 0*w.poll(v, last)`,
		caught: []string{"quorum.TestWaiterWithoutAnyMessageStillGetsTheLock"},
	},
	{
		name: "the TTLs that were seen do not matter",
		rule: "until the TTLs that were seen allow a quorum",
		file: "quorum/wait.go",
		old:  `case free <= 0:`, new: `case free >= 0:`,
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
		old:  `return permanent > len(votes)-c.need`, new: `return permanent >= 0`,
		caught: []string{"quorum.TestAcquireWaitsThroughAnOutage"},
	},
	{
		name: "errors that waiting cannot cure are waited for",
		rule: "more than N - quorum nodes answered errors that waiting cannot cure",
		file: "quorum/attempt.go",
		old:  `if node.Permanent(vote.Err) {`, new: `if node.Permanent(vote.Err) && false {`,
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
		file: "quorum/wake.go",
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
		file: "quorum/wake.go",
		old:  `if n >= ln.c.need && news {`, new: `if n >= 1 && news {`,
		caught: []string{"quorum.TestOnlyAQuorumOfReleasesWakesAWaiter"},
	},
	{
		name: "a rollback wakes",
		rule: "else losers of a split vote wake each other for ever",
		file: "quorum/wake.go",
		old:  `case e.Payload == script.Free:`, new: `case e.Payload != "":`,
		caught: []string{"quorum.TestOnlyAQuorumOfReleasesWakesAWaiter"},
	},
	{
		name: "an announcement counts for ever",
		rule: "what was announced before it is sent, it will see for itself",
		file: "quorum/wake.go",
		old: `	clear(ln.announced)
	clear(ln.owing)
	clear(ln.free)`, new: `	clear(ln.owing)
	clear(ln.free)`,
		caught: []string{"quorum.TestOnlyAQuorumOfReleasesWakesAWaiter"},
	},
	{
		name: "no attempt after a reconnect",
		rule: "the node may have announced something while we did not hear it",
		file: "quorum/wake.go",
		old: `		ln.announced[i], ln.owing[i] = true, false
		ln.signalIfFree()
	case e.Payload`, new: `	case e.Payload`,
		caught: []string{"quorum.TestWaiterThatWasCutOffTriesWhenItListensAgain"},
	},
	{
		name: "a connection that is left is confirmed",
		rule: "messages arrive from now on",
		file: "node/listen.go",
		old: `	if ls.subscribed[channel] {
		ls.confirmed[channel] = true
	}
	return ls.subscribed[channel]`, new: `	ls.confirmed[channel] = true
	return true`,
		caught: []string{"node.TestConfirmationOfAChannelThatWasLeftIsNobodys"},
	},
	{
		name: "the first confirmation counts",
		rule: "not yet if it has taken it up again",
		file: "node/listen.go",
		old:  `ls.asked[channel] > 0 {`, new: `false {`,
		caught: []string{"node.TestConfirmationIsThatOfTheLastSubscription"},
	},
	{
		name: "confirmed to nobody",
		rule: "whoever comes before the connection leaves is told at once",
		file: "node/listen.go",
		old: `	if ls.subscribed[channel] {
		ls.confirmed[channel] = true`, new: `	if ls.subscribed[channel] {
		ls.confirmed[channel] = ls.channels[channel] != nil`,
		caught: []string{"node.TestConfirmationThatFindsNobodyIsForWhoeverComesNext"},
	},
	{
		name: "a subscription connection for each wait",
		rule: "who waits for a lock that goes back and forth listens again soon",
		file: "node/hear.go",
		old:  `idle > 1 ||`, new: `idle >= 0 ||`,
		caught: []string{"node.TestConnectionIsKeptForWhoeverListensNext"},
	},
	{
		name: "too fast for ever",
		rule: "until it finds the same holder twice",
		file: "quorum/crowd.go",
		old:  `cr.busy && moved`, new: `cr.busy`,
		caught: []string{"quorum.TestWaiterListensAgainToALockThatHasStopped"},
	},
	{
		name: "lines linger for ever",
		rule: "soon after the last one has left, the line is gone",
		file: "quorum/line.go",
		old: `			default:
				ln.all.remove(ln)`, new: `			default:
				ln.hush()`,
		caught: []string{"quorum.TestNothingIsLeftOfALine"},
	},
	{
		name: "lines linger after Close",
		rule: "close ends the lines that only stay for a while",
		file: "quorum/coordinator.go",
		old:  `	c.lines.close()` + "\n", new: ``,
		caught: []string{"quorum.TestNothingIsLeftOfALine"},
	},
	{
		name: "comeBack without rivals",
		rule: "longer every time, since there are more of them than was thought",
		file: "quorum/split.go",
		old:  `	return max(0, len(seen)-1)`, new: `	return max(0, min(0, len(seen)))`,
		caught: []string{"quorum.TestContendersThatWithdrawComeBackLaterTheMoreThereAre"},
	},
	{
		name: "a crew that starts anew for each task",
		rule: "keeps the goroutines for the next ones",
		file: "quorum/crew.go",
		old:  `len(cr.idle) >= mostIdle`, new: `len(cr.idle) >= 0*mostIdle`,
		caught: []string{"quorum.TestCrewKeepsItsGoroutines"},
	},
	{
		name: "a look reads nothing from a node that does not answer",
		rule: "a key of another type is an error",
		file: "node/look.go",
		old:  `if first.err != nil {`, new: `if first.err != nil && holder != "" {`,
		caught: []string{"node.TestLookIsBounded"},
	},
	{
		name: "every name is looked at every second",
		rule: "who waits for very many names looks a thousand times a second",
		file: "quorum/wait.go",
		old:  `max(pollHeld, time.Duration(w.line.all.count())*pollEach)`, new: `max(pollHeld, 0)`,
		caught: []string{"quorum.TestWaitingForManyNamesAsksNoMoreThanForAThousand"},
	},
	{
		name: "a poll is a try",
		rule: "who comes after a delay looks before it tries",
		file: "quorum/wait.go",
		old:  `if woken && ln.alone() ||`, new: `if ln.alone() ||`,
		caught: []string{"quorum.TestWaitingForManyNamesAsksNoMoreThanForAThousand"},
	},
	{
		name: "centuries wrap round",
		rule: "a foreign key may have centuries left",
		file: "quorum/wait.go",
		old:  `.Add(free).Add(w.c.upTo(5 * time.Millisecond))`, new: `.Add(free + w.c.upTo(5*time.Millisecond))`,
		caught: []string{"quorum.TestCenturiesDoNotWrapRound"},
	},
	{
		name: "a look outlasts the wait",
		rule: "it does not outlast the wait",
		file: "quorum/crowd.go",
		old:  `	case <-w.ctx.Done():` + "\n" + `		return sight`, new: `	case <-context.Background().Done():` + "\n" + `		return sight`,
		caught: []string{"quorum.TestWaiterThatLooksAtAHungNodeEndsAtOnce"},
	},
	{
		name: "listening while nobody waits",
		rule: "the end of a wait leaves nothing behind",
		file: "quorum/line.go",
		old: `		ln.hush()
		ln.stay()`, new: `		ln.stay()`,
		caught: []string{"quorum.TestEndOfAWaitEndsTheSubscriptionWhileTheLockIsHeld"},
	},
	{
		name: "errors of a minority are hopeless",
		rule: "more than N - quorum nodes answered errors that waiting cannot cure",
		file: "quorum/attempt.go",
		old:  `permanent > len(votes)-c.need`, new: `permanent >= len(votes)-c.need`,
		caught: []string{"quorum.TestAcquireWaitsWhileThoseThatMayBeCuredAreAQuorum"},
	},
	{
		name: "errors that waiting cannot cure are overlooked when they come late",
		rule: "errors that waiting cannot cure end it at once",
		file: "quorum/wake.go",
		old:  `if ln.attempts != w.attempt || !ln.incurable {`, new: `if ln.attempts >= 0 {`,
		caught: []string{"quorum.TestAcquireFailsAtOnceOnErrorsThatComeAfterTheDecision"},
	},
	{
		name: "what ended one wait ends the next",
		rule: "who stood behind tries for itself",
		file: "quorum/wake.go",
		old:  `if ln.attempts != w.attempt || !ln.incurable {`, new: `if !ln.incurable {`,
		caught: []string{"quorum.TestErrorsThatWaitingCannotCureEndNobodyElsesWait"},
	},
	{
		name: "a release while the waiter stays away is forgotten",
		rule: "those that announced a release since it was sent",
		file: "quorum/crowd.go",
		old:  `return false, ln.unseen()`, new: `return false, min(-1, ln.unseen())`,
		caught: []string{"quorum.TestReleaseWhileTheWaiterStaysAwayIsNotMissed"},
	},
	{
		name: "the rest of a release counts as the next one",
		rule: "once per release, not N times",
		file: "quorum/wake.go",
		old:  `ln.owing[i] = !announced`, new: `ln.owing[i] = false && announced`,
		caught: []string{"quorum.TestRestOfAReleaseDoesNotCountForTheNext"},
	},
	{
		name:   "every look is in a hurry",
		rule:   "who is in no hurry waits for the node's timeout",
		file:   "quorum/crowd.go",
		old:    `	if !hurried {`,
		new:    `	if !hurried && i < 0 {`,
		caught: []string{"quorum.TestLookWaitsForASlowNode"},
	},
	{
		name:   "a look in a hurry does not wait for a far node",
		rule:   "how long a look in a hurry may take in any case",
		file:   "quorum/crowd.go",
		old:    `min(max(lookPatience, w.c.nodes[i].patience(timeout)), timeout)`,
		new:    `min(max(lookPatience, w.c.nodes[i].patience(0)), timeout)`,
		caught: []string{"quorum.TestLookThatFindsTheLockTakenCostsNoScript"},
	},
	{
		name:   "a loss is looked for in a hurry",
		rule:   "the process may be the last to know that it has lost it",
		file:   "quorum/wait.go",
		old:    `w.look(w.lookNext(), w.c.cfg.NodeTimeout)`,
		new:    `w.look(w.lookNext(), lookPatience)`,
		caught: []string{"quorum.TestLossIsSeenOnSlowNodes"},
	},
	{
		name:   "a look takes a whole node timeout",
		rule:   "a node that has begun to hang is not to keep the lock from who looks just there",
		file:   "quorum/crowd.go",
		old:    `	if !hurried {`,
		new:    `	if i >= 0 {`,
		caught: []string{"quorum.TestWaiterDoesNotWaitForANodeThatHangs"},
	},
	{
		name: "the wait time does not end a look",
		rule: "a look does not outlast the wait",
		file: "quorum/crowd.go",
		old: `	case <-w.expired:
		return sight{node: i, err: ErrNotAcquired}`, new: ``,
		caught: []string{"quorum.TestWaitTimeEndsALookAtAHungNode"},
	},
	{
		name: "the wait time does not end the wait for a subscription",
		rule: "the wait ends with its time",
		file: "quorum/wait.go",
		old: `		case <-w.expired:
			return
		}`, new: `		}`,
		caught: []string{"quorum.TestWaitTimeEndsTheWaitForASubscription"},
	},
	{
		name: "an error shares its votes with the line",
		rule: "whatever ends a wait carries every node's last word",
		file: "quorum/wait.go",
		old:  `slices.Clone(v.votes)`, new: `v.votes`,
		caught: []string{"quorum.TestVotesOfAnErrorAreItsOwn"},
	},
	{
		name: "names that are held are counted as waited for",
		rule: "who waits for very many names looks a thousand times a second",
		file: "quorum/line.go",
		old:  `return ls.wanted`, new: `return len(ls.byName)`,
		caught: []string{"quorum.TestNamesThatAreHeldAreNotAmongThoseWaitedFor"},
	},
	{
		name: "two pings may go unanswered",
		rule: "a dead connection is noticed by our own ping within two node timeouts",
		file: "node/hear.go",
		old: `	if !s.recent.Swap(false) {
		return false
	}`, new: `	if s.recent.Swap(false) {
		s.refused = nil
	} else if s.refused != nil {
		return false
	} else {
		s.refused = errOnce
	}`,
		caught: []string{"node.TestSilentConnectionIsReplaced"},
	},
	{
		name: "a release that was taken up brings a try",
		rule: "who comes after a delay looks before it tries",
		file: "quorum/crowd.go",
		old:  `return false, ln.unseen()`, new: `return ln.unseen() >= 0, -1`,
		caught: []string{"quorum.TestReleaseThatWasTakenUpMeanwhileCostsNoScript"},
	},
	{
		name: "one server under two addresses counts as busy",
		rule: "two addresses of one server are refused",
		file: "quorum/wake.go",
		old:  `ln.votes, ln.incurable = votes, ln.c.incurable(votes)`, new: `ln.votes, ln.incurable = votes, ln.c.incurable(votes) || ln.c.sameServer.Load()`,
		caught: []string{"quorum.TestWaiterIsToldOfOneServerUnderTwoAddresses"},
	},
}
