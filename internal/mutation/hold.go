package main

// holdVariants break what keeps a lease, and what ends it.
var holdVariants = []variant{
	{
		name: "no drift",
		rule: "by how much less than its TTL a lease may be believed",
		file: "quorum/options.go",
		old:  `return clock.Drift(ttl, c.cfg.DriftFactor, c.cfg.Clock.Uncertainty())`, new: `return 0 * clock.Drift(ttl, 0, 0)`,
		caught: []string{"quorum.TestLossIsAnnouncedBeforeAnyNodeExpires"},
	},
	{
		name: "restored after the end",
		rule: "no request may take effect after the old end",
		file: "quorum/renewal.go",
		old: `count, TTL: ttl, Token: h.fence}),
		until: end, begun: now, ttl: ttl, to: r,
	})
	return r`,
		new: `count, TTL: ttl, Token: h.fence}),
		begun: now, ttl: ttl, to: r,
	})
	return r`,
		caught: []string{"quorum.TestRenewalThatArrivesAfterTheEndDoesNothing"},
	},
	{
		name: "renewal counted late",
		rule: "a round counts only if a quorum answers before the old end",
		file: "quorum/renewal.go",
		old:  `inTime := h.err == nil && h.c.clock.Now().Before(h.end)`, new: `inTime := h.err == nil`,
		caught: []string{"quorum.TestRenewalInFlightDuringASuspendDoesNotCount", "quorum.TestRenewalThatIsAnsweredAfterTheOldEndDoesNotCount"},
	},
	{
		name: "validity of a renewal from its answer",
		rule: "the new validity counts from before the first send",
		file: "quorum/renewal.go",
		old:  `return h.extended(r.start, r.extend)`, new: `return h.extended(h.c.clock.Now(), r.extend)`,
		caught: []string{"quorum.TestRenewedLeaseEndsBeforeItsKeys"},
	},
	{
		name: "lost only when all nodes are others'",
		rule: "more than N - quorum nodes with another holder, or revoked: the lease ends at once",
		file: "quorum/renewal.go",
		old:  `return t.held > len(r.h.c.nodes)-r.need`, new: `return false`,
		caught: []string{"quorum.TestNodeThatHangsDoesNotPutOffALoss"},
	},
	{
		name: "a minority of strangers ends a lease",
		rule: "more nodes than a quorum can spare",
		file: "quorum/renewal.go",
		old:  `return t.held > len(r.h.c.nodes)-r.need`, new: `return t.held > 0`,
		caught: []string{"quorum.TestMinorityOfStrangersDoesNotEndALease"},
	},
	{
		name: "answers after the decision ignored",
		rule: "where only the answers after the decision show it",
		file: "quorum/renewal.go",
		old:  `if b.count().held > len(h.c.nodes)-h.c.need {`, new: `if false {`,
		caught: []string{"quorum.TestLossThatOnlyLateAnswersShow"},
	},
	{
		name: "no healing before the next renewal",
		rule: "a bare majority should not stand alone until the next regular renewal",
		file: "quorum/renewal.go",
		old:  `next = soon` + "\n", new: `_ = soon` + "\n",
		caught: []string{"quorum.TestMissedNodesAreAskedAgainSoon"},
	},
	{
		name: "a node with a lower token is whole",
		rule: "store a lower token are asked again soon",
		file: "quorum/lane.go",
		old:  `return l.confirmed && l.fence >= token`, new: `return l.confirmed`,
		caught: []string{"quorum.TestNodeThatGrantedALowerFenceIsRaisedSoon"},
	},
	{
		name: "the watchdog does not renew",
		rule: "renewed every third of the TTL",
		file: "quorum/hold.go",
		old:  `return h.cadence.Next(h.start)`, new: `return h.end`,
		caught: []string{"quorum.TestWatchdogKeepsALeaseForManyTTLs"},
	},
	{
		name: "a lease time is renewed",
		rule: "a lease that is never renewed by the watchdog",
		file: "quorum/hold.go",
		old:  `if !h.watched || (`, new: `if (`,
		caught: []string{"quorum.TestLeaseWithALeaseTimeIsNotRenewed"},
	},
	{
		name: "MaxHold ignored",
		rule: "ends a watched lease no later than this after its grant",
		file: "quorum/hold.go",
		old:  `if h.watched && c.cfg.MaxHold > 0 {`, new: `if false {`,
		caught: []string{"quorum.TestMaxHoldEndsAWatchedLease"},
	},
	{
		name: "MaxHold renewed away",
		rule: "ends a watched lease no later than this after its grant",
		file: "quorum/renewal.go",
		old:  `end = clock.Earlier(end, h.limit)`, new: `_ = h.limit`,
		caught: []string{"quorum.TestMaxHoldEndsAWatchedLease"},
	},
	{
		name: "Err without the clock",
		rule: "it reads the clock: a process that was suspended learns the truth here",
		file: "quorum/hold.go",
		old:  `if err == nil && !h.c.clock.Now().Before(end) {`, new: `if err == nil && end.IsZero() {`,
		caught: []string{"quorum.TestFirstLookAfterASuspendShowsTheEnd"},
	},
	{
		name: "a loss cancels no context",
		rule: "its context cancelled",
		file: "quorum/lease.go",
		old:  `cancels = append(cancels, cancel)`, new: `_ = cancel`,
		caught: []string{"quorum.TestContextThatIsWaitedForEndsWithItsLease"},
	},
	{
		name: "a lost lease stays on the nodes",
		rule: "after any end, release runs on all nodes",
		file: "quorum/hold.go",
		old: `		defer h.c.leave()
		h.depart()`,
		new: `		defer h.c.leave()
		if cause == ErrReleased {
			h.depart()
		}`,
		caught: []string{"quorum.TestMaxHoldEndsAWatchedLease"},
	},
	{
		name: "two tell the nodes a count at once",
		rule: "would each tell the nodes a count that the other does not know",
		file: "quorum/hold.go",
		old:  `make(chan struct{}, 1),`, new: `make(chan struct{}, 2),`,
		caught: []string{"quorum.TestHoldsAddedAtOnceCountEachOther"},
	},
	{
		name: "a lock won while Close ran is kept",
		rule: "it fails once the coordinator is closed",
		file: "quorum/hold.go",
		old:  `if !c.live(h) {`, new: `if c.live(h); false {`,
		caught: []string{"quorum.TestLockWonWhileCloseRunsIsGivenBack"},
	},
	{
		name: "a restated count that never expires",
		rule: "no request may take effect after the old end",
		file: "quorum/renewal.go",
		old: `		until: end, begun: now, ttl: ttl, to: restatement{b, h},
	})
	b.whenComplete(h.heal)`, new: `		begun: now, ttl: ttl, to: restatement{b, h},
	})
	_ = end
	b.whenComplete(h.heal)`,
		caught: []string{"quorum.TestRestatedCountThatArrivesAfterTheEndDoesNothing"},
	},
	{
		name: "a shortened TTL is not reported",
		rule: "report a PTTL below expectation at renewals",
		file: "quorum/lane.go",
		old:  `renewed.TTL >= due-slack`, new: `renewed.TTL >= 0*(due-slack)`,
		caught: []string{"quorum.TestShortenedTTLIsReported"},
	},
	{
		name: "MaxHold only after the first TTL",
		rule: "ends a watched lease no later than this after its grant",
		file: "quorum/hold.go",
		old:  `h.end = clock.Earlier(h.end, h.limit)`, new: `_ = h.limit`,
		caught: []string{"quorum.TestMaxHoldMayBeShorterThanTheTTL"},
	},
	{
		name: "a node that was missed has the lock",
		rule: "the vote that somebody else would get, if the holder has it on the node",
		file: "quorum/lane.go",
		old: `	if !l.present {
		return Vote{Node: l.node.name}`, new: `	if false {
		return Vote{Node: l.node.name}`,
		caught: []string{"quorum.TestNodeThatALockOfOurOwnDidNotReachIsNotSaidToHoldIt"},
	},
}
