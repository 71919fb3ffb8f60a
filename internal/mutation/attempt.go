package main

// attemptVariants break the rules of one try: its votes, its rollback, its token, and several tries at once.
var attemptVariants = []variant{
	{
		name: "a quorum of N/2",
		rule: "of which two such sets always share one",
		file: "quorum/ballot.go",
		old:  `return n/2 + 1`, new: `return n / 2`,
		caught: []string{"quorum.TestNoQuorumWhenTooManyNodesFail", "quorum.TestSecondClientIsRefusedWhileTheFirstHolds"},
	},
	{
		name: "blind one node too late",
		rule: "so many nodes failed that no quorum of answers can exist",
		file: "quorum/ballot.go",
		old:  `t.failed+t.unknown > n-need`, new: `t.failed+t.unknown > n-need+1`,
		caught: []string{"quorum.TestNoQuorumWhenTooManyNodesFail"},
	},
	{
		name: "a holder for all attempts",
		rule: "a new claim with a holder that was never used before",
		file: "quorum/coordinator.go",
		old:  `strconv.FormatUint(c.holders.Add(1), 10)`, new: `strconv.FormatUint(max(1, c.holders.Load()), 10)`,
		caught: []string{"quorum.TestWithoutLeaseIsAStranger"},
	},
	{
		name: "a holder for all attempts at a name",
		rule: "the overtaken rollback of the first would delete the grant of the second",
		file: "quorum/claim.go",
		old:  `holder: c.newHolder()`, new: `holder: c.id + ":" + name`,
		caught: []string{"quorum.TestRollbackThatIsSaidAgainSparesTheNextAttempt"},
	},
	{
		name: "an answer to somebody else in our name is a grant",
		rule: "nothing is sent twice: somebody else was asked in our name",
		file: "quorum/vote.go",
		old:  `v.Outcome, v.Err = Failed, ErrSameServer`, new: `v.Outcome = Granted`,
		caught: []string{"quorum.TestNodeThatKnowsAFreshHolderCastsNoVote"},
	},
	{
		name: "two addresses of one server go on",
		rule: "a quorum of addresses is then no quorum of servers, so no lock is taken any more",
		file: "quorum/attempt.go",
		old:  `case a.c.sameServer.Load():`, new: `case false:`,
		caught: []string{"quorum.TestTwoAddressesOfOneServerAreAnError"},
	},
	{
		name: "validity from the quorum's answer",
		rule: "before the first send: validity counts from here",
		file: "quorum/attempt.go",
		old: `	v := a.poll()
	if v == nil {
		v = a.fence()
	}`,
		new: `	v := a.poll()
	a.start = c.clock.Now()
	if v == nil {
		v = a.fence()
	}`,
		caught: []string{"quorum.TestGrantThatComesTooLateIsNoQuorum"},
	},
	{
		name: "a grant that comes too late is accepted",
		rule: "checks that the grant came in time",
		file: "quorum/attempt.go",
		old:  `if !a.c.clock.Now().Before(a.end()) {`, new: `if false {`,
		caught: []string{"quorum.TestGrantThatComesTooLateIsNoQuorum"},
	},
	{
		name: "a raise that comes too late is accepted",
		rule: "in time after the quorum, and after the fence raise if one was needed",
		file: "quorum/attempt.go",
		old: `	if v := a.agree(); v != nil {
		return v
	}
	if !a.c.clock.Now().Before(a.end()) {`,
		new: `	late := !a.c.clock.Now().Before(a.end())
	if v := a.agree(); v != nil {
		return v
	}
	if late {`,
		caught: []string{"quorum.TestRaiseThatIsAnsweredTooLateIsNoQuorum"},
	},
	{
		name: "no rollback",
		rule: "withdrawn wherever it may have left something",
		file: "quorum/attempt.go",
		old:  `	a.claim.withdraw(t)` + "\n", new: ``,
		caught: []string{"quorum.TestNoQuorumWhenTooManyNodesFail"},
	},
	{
		name: "rollback on the caller's context",
		rule: "belongs to no caller's context: it goes on until the node has confirmed it",
		file: "quorum/attempt.go",
		old:  `	a.claim.withdraw(t)`,
		new: `	if ctx.Err() == nil {
		a.claim.withdraw(t)
	}`,
		caught: []string{"quorum.TestRollbackDoesNotDependOnTheCallersContext"},
	},
	{
		name: "rollback only where it was granted",
		rule: "rolls back on every node granted or unknown",
		file: "quorum/lane.go",
		old: `		if node.Sent(a.err) {
			l.present = true`,
		new: `		if node.Sent(a.err) {
			l.present = l.present && true`,
		caught: []string{"quorum.TestGrantWhoseReplyIsLostIsRolledBack"},
	},
	{
		name: "rollback only where it was unknown",
		rule: "rolls back on every node granted or unknown",
		file: "quorum/lane.go",
		old: `		l.suspect(a.reply)
		l.present, l.confirmed = true, true`,
		new: `		l.suspect(a.reply)
		l.present, l.confirmed = false, true`,
		caught: []string{"quorum.TestNoQuorumWhenTooManyNodesFail"},
	},
	{
		name: "rollback said once",
		rule: "sends a farewell until the node has answered that the holder is gone",
		file: "quorum/farewell.go",
		old:  `over := !present ||`, new: `over := true || present ||`,
		caught: []string{"quorum.TestReleaseWithoutAQuorumSaysSoAndGoesOn", "quorum.TestRollbackGoesOnUntilNothingCanArriveAnyMore"},
	},
	{
		name: "absent believed while a request may still arrive",
		rule: "a request that is still on its way may yet arrive",
		file: "quorum/lane.go",
		old: `yet arrive.
		l.present = a.reply.Now <= l.horizon`, new: `yet arrive.
		l.present = false`,
		caught: []string{"quorum.TestRollbackGoesOnUntilNothingCanArriveAnyMore"},
	},
	{
		name: "the last moment of a lost request forgotten",
		rule: "until then it may still make the holder present",
		file: "quorum/lane.go",
		old:  `l.horizon = max(l.horizon, sent.Last)`, new: `_ = sent.Last`,
		caught: []string{"quorum.TestRollbackGoesOnUntilNothingCanArriveAnyMore"},
	},
	{
		name: "rollback announced as a release",
		rule: "1 when only a failed attempt was rolled back",
		file: "quorum/claim.go",
		old:  `cl.leave(t, script.RolledBack, 0,`, new: `cl.leave(t, script.Free, 0,`,
		caught: []string{"quorum.TestRollbackIsAnnouncedAsRolledBack"},
	},
	{
		name: "release overtakes the request before it",
		rule: "one at a time, the newest state last",
		file: "quorum/lane.go",
		old:  `return l.present || l.underWay(), l.fence`, new: `return l.present, l.fence`,
		caught: []string{"quorum.TestReleaseThatGetsThereFirstIsSaidAgain"},
	},
	{
		name:   "stragglers cancelled",
		rule:   "a request under way runs to its own end, or nobody knows what it did",
		file:   "quorum/errand.go",
		old:    `Deadline: time.Now().Add(l.node.c.cfg.NodeTimeout)`,
		new:    `Deadline: time.Now().Add(3*time.Millisecond)`,
		caught: []string{"quorum.TestRollbackDoesNotDependOnTheCallersContext"},
	},
	{
		name: "the first answer of a granting node is the token",
		rule: "the token is the highest fence among the nodes that granted",
		file: "quorum/token.go",
		old:  `case a.reply.Fence > fence:`, new: `case fence == 0:`,
		caught: []string{"quorum.TestTokensIncreaseWhenCountersAreAheadAndNodesForgetOneByOne"},
	},
	{
		name: "token accepted before a quorum stores it",
		rule: "accepted once a quorum of nodes that are still ours stores at least that much",
		file: "quorum/token.go",
		old:  `if storing >= a.c.need {`, new: `if storing >= 1 {`,
		caught: []string{"quorum.TestTokenIsStoredByAQuorumBeforeItIsUsed"},
	},
	{
		name: "a raise where the lock is no longer ours counts",
		rule: "no longer ours, whatever became of it",
		file: "quorum/token.go",
		old:  `if a.err == nil && a.reply.Status == script.Absent {`, new: `if false {`,
		caught: []string{"quorum.TestRaiseOfALockThatIsGoneIsNoVote"},
	},
	{
		name: "nobody leads a split vote",
		rule: "the lock is not held, and if all of them gave up, nobody would have it",
		file: "quorum/split.go",
		old:  `return st.leads && now.Before(s.until)`, new: `return false`,
		caught: []string{"quorum.TestLeaderOfASplitVoteKeepsItsGrants"},
	},
	{
		name: "one look for a rival's quorum",
		rule: "found a second time on a quorum of nodes",
		file: "quorum/split.go",
		old:  `(st.unanimous || s.confirmed(st))`, new: `true`,
		caught: []string{"quorum.TestQuorumThatNeverWasIsNoReasonToGiveUp"},
	},
	{
		name: "a split vote is not acquired",
		rule: "no single holder has a quorum, so \"not acquired\" would be wrong",
		file: "quorum/split.go",
		old:  `v.split = true`, new: `v.split = false`,
		caught: []string{"quorum.TestExactlyOneOfSeveralSimultaneousTriesWins"},
	},
	{
		name: "a stalemate goes on",
		rule: "nobody of them can be about to win or to withdraw",
		file: "quorum/split.go",
		old:  `return now.Sub(s.since) >= 2*c.cfg.NodeTimeout`, new: `return false`,
		caught: []string{"quorum.TestWaiterTakesAStalemateForAHold"},
	},
	{
		name: "keys of another type may withdraw",
		rule: "keys of another type, which will not withdraw",
		file: "quorum/split.go",
		old:  `case st.blocked > len(a.c.nodes)-a.c.need:`, new: `case false:`,
		caught: []string{"quorum.TestKeyOfAnotherTypeIsHeldByAnother"},
	},
	{
		name: "farewell given up before the TTL",
		rule: "or until the TTL has passed, and the key with it",
		file: "quorum/farewell.go",
		old:  `.Add(l.node.c.cfg.NodeTimeout).Add(req.TTL)`, new: `.Add(l.node.c.cfg.NodeTimeout)`,
		caught: []string{"quorum.TestFarewellOutlastsAnOutage"},
	},
	{
		name: "a silent node is waited for again",
		rule: "a node that was silent the last time is not waited for",
		file: "quorum/voter.go",
		old:  `case v.silent.Load():`, new: `case false:`,
		caught: []string{"quorum.TestSilentNodeIsNotWaitedForTwice"},
	},
	{
		name: "the clamp grows with the lease",
		rule: "the clamps have to be less than any quarantine that there has been, whatever TTL is in use by now",
		file: "quorum/attempt.go",
		old:  `min(a.terms.ttl/4, maxClamp)`, new: `a.terms.ttl/4`,
		caught: []string{"quorum.TestTokenOfALongLeaseByAClientWhoseClockIsBehindGrows"},
	},
	{
		name: "a first hold counts twice",
		rule: "holder H has hold count C",
		file: "quorum/attempt.go",
		old:  `Count: 1, TTL: a.terms.ttl`, new: `Count: 2, TTL: a.terms.ttl`,
		caught: []string{"quorum.TestFirstHoldCountsAsOneOnEveryNode"},
	},
	{
		name: "one rival's look counts for another",
		rule: "finds the same holder there still",
		file: "quorum/split.go",
		old:  `return s.rival == st.rival && n >= s.attempt.c.need`, new: `return n >= s.attempt.c.need`,
		caught: []string{"quorum.TestEveryRivalIsLookedForTwice"},
	},
	{
		name: "a question that finds itself is another server",
		rule: "a network that delivers a request twice may grant a question that was answered held",
		file: "quorum/lane.go",
		old:  `if l.acquires > 1 && a.reply.Status == script.Already {`, new: `if false {`,
		caught: []string{"quorum.TestHolderThatWasAskedForTwiceMayFindItself"},
	},
	{
		name: "of equals any may lead",
		rule: "of several such the one with the smallest holder leads",
		file: "quorum/split.go",
		old:  `(n == len(st.nodes) && holder < st.rival)`, new: `false`,
		caught: []string{"quorum.TestOfEquallyStrongContendersTheSmallestHolderLeads"},
	},
	{
		name: "the smallest holder is the strongest",
		rule: "the one that has the most nodes leads",
		file: "quorum/split.go",
		old:  `(n == len(st.nodes) && holder < st.rival)`, new: `holder < st.rival`,
		caught: []string{"quorum.TestHolderOfAQuorumIsFoundAmongOtherContenders"},
	},
	{
		name: "nodes that fail will not withdraw",
		rule: "nodes with a key of another type",
		file: "quorum/split.go",
		old:  `case ans.vote.Outcome == Held && ans.vote.Holder == "":`, new: `case ans.vote.Holder == "":`,
		caught: []string{"quorum.TestHolderOnOneNodeOfTooFewThatAnswerIsNoRefusal"},
	},
	{
		name: "the token is raised only where it was granted",
		rule: "granted less, or not in yet",
		file: "quorum/token.go",
		old:  `ans.vote.Outcome == Unknown && ans.err == nil:`, new: `false:`,
		caught: []string{"quorum.TestNodeThatHasNotAnsweredYetMayStoreTheToken"},
	},
	{
		name: "renewed after the release",
		rule: "the release was put: nothing comes after it",
		file: "quorum/lane.go",
		old:  `l.over, begin = true, true`, new: `begin = true`,
		caught: []string{"quorum.TestNothingIsSentAfterTheRelease"},
	},
}
