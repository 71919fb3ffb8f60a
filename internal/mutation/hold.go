package main

// holdVariants break the rules of a lock that is held: its end, its renewal and healing, nesting, release and force-release.
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
		old: `count, TTL: ttl, Token: h.token},
		until: end, begun: now, ttl: ttl,
	})
	defer`,
		new: `count, TTL: ttl, Token: h.token},
		begun: now, ttl: ttl,
	})
	defer`,
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
		old:  `return h.extended(now, extend)`, new: `return h.extended(h.c.clock.Now(), extend)`,
		caught: []string{"quorum.TestRenewedLeaseEndsBeforeItsKeys"},
	},
	{
		name: "lost only when all nodes are others'",
		rule: "more than N - quorum nodes with another holder, or revoked: the lease ends at once",
		file: "quorum/renewal.go",
		old:  `case t.held > len(h.c.nodes)-h.c.need:`, new: `case false:`,
		caught: []string{"quorum.TestNodeThatHangsDoesNotPutOffALoss"},
	},
	{
		name: "a minority of strangers ends a lease",
		rule: "more nodes than a quorum can spare",
		file: "quorum/renewal.go",
		old:  `case t.held > len(h.c.nodes)-h.c.need:`, new: `case t.held > 0:`,
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
		name: "release without the token",
		rule: "a node that was missed must not be the only one left that remembers too little",
		file: "quorum/hold.go",
		old:  `h.leave(h.terms, script.Free, h.token, func`, new: `h.leave(h.terms, script.Free, 0, func`,
		caught: []string{"quorum.TestReleaseRaisesTheFenceOfNodesThatWereMissed"},
	},
	{
		name: "release only where the lock was seen",
		rule: "nothing of ours can be there, and the node knows the token",
		file: "quorum/farewell.go",
		old:  `if !present && fence >= req.Token {`, new: `if !present && fence >= 0 {`,
		caught: []string{"quorum.TestReleaseRaisesTheFenceOfNodesThatWereMissed"},
	},
	{
		name: "release not announced",
		rule: "0 when the lock becomes free",
		file: "quorum/hold.go",
		old:  `h.leave(h.terms, script.Free,`, new: `h.leave(h.terms, script.RolledBack,`,
		caught: []string{"quorum.TestWaiterIsWokenByTheRelease"},
	},
	{
		name: "release confirmed by one node",
		rule: "nil once a quorum of nodes confirmed that the holder is gone",
		file: "quorum/release.go",
		old:  `case t.granted+t.held >= c.need:`, new: `case t.granted+t.held >= 1:`,
		caught: []string{"quorum.TestReleaseWithoutAQuorumSaysSoAndGoesOn"},
	},
	{
		name: "release on its caller's context",
		rule: "Release always sends, whatever its ctx",
		file: "quorum/release.go",
		old:  `	last, err := l.giveBack()`,
		new: `	if ctx.Err() != nil {
		return ctx.Err()
	}
	last, err := l.giveBack()`,
		caught: []string{"quorum.TestReleaseSendsAlthoughItsContextIsOver"},
	},
	{
		name: "a nested hold not given back ends with the first",
		rule: "the lock itself is released with the last handle",
		file: "quorum/release.go",
		old:  `if len(h.handles) == 1 {`, new: `if len(h.handles) >= 1 {`,
		caught: []string{"quorum.TestNodesShowTheTrueHoldCount"},
	},
	{
		name: "a failed nested hold leaves its count",
		rule: "failing, they restore the previous count",
		file: "quorum/nested.go",
		old:  `		h.restate(count)`, new: `		_ = count`,
		caught: []string{"quorum.TestContextEndingInANestedAcquireLeavesTheOuterOneWhole"},
	},
	{
		name: "a failed nested hold deletes",
		rule: "never DEL",
		file: "quorum/nested.go",
		old:  `		h.restate(count)`, new: `		h.depart()`,
		caught: []string{"quorum.TestNestedHoldThatFailsLeavesTheOuterOneWhole"},
	},
	{
		name: "a nested hold extends a lease time",
		rule: "shares the lease it nests in, and its TTL",
		file: "quorum/nested.go",
		old:  `h.round(ctx, op, count+1, h.watched)`, new: `h.round(ctx, op, count+1, true)`,
		caught: []string{"quorum.TestNestedHoldDoesNotExtendALeaseTime"},
	},
	{
		name: "two tell the nodes a count at once",
		rule: "would each tell the nodes a count that the other does not know",
		file: "quorum/hold.go",
		old:  `make(chan struct{}, 1),`, new: `make(chan struct{}, 2),`,
		caught: []string{"quorum.TestHoldsAddedAtOnceCountEachOther"},
	},
	{
		name: "a stranger nests",
		rule: "a copy of ctx that carries no lease: an acquire under it is one by a stranger",
		file: "quorum/context.go",
		old: `	case heldKey, leaseKey:
		return nil`,
		new: `	case leaseKey:
		return nil`,
		caught: []string{"quorum.TestWithoutLeaseIsAStranger"},
	},
	{
		name: "another coordinator's hold is ours",
		rule: "acquiring the same name under it, with the same coordinator",
		file: "quorum/context.go",
		old:  `case heldKey{c.lease.hold.c, c.lease.hold.name}:`, new: `case heldKey{c.lease.hold.c, c.lease.hold.name}, key:`,
		caught: []string{"quorum.TestWithoutLeaseIsAStranger"},
	},
	{
		name: "an ended lease is nested in",
		rule: "returns the live hold of a name",
		file: "quorum/context.go",
		old:  `if h == nil || h.check() != nil {`, new: `if h == nil {`,
		caught: []string{"quorum.TestAcquireUnderAnEndedLeaseIsAFirstHold"},
	},
	{
		name: "Close releases nothing",
		rule: "frees on the nodes what was held",
		file: "quorum/coordinator.go",
		old:  `		h.depart()` + "\n", new: ``,
		caught: []string{"quorum.TestCloseFreesWhatIsHeldAndIsBounded"},
	},
	{
		name: "Close waits for the TTL",
		rule: "it takes at most twice the node timeout",
		file: "quorum/coordinator.go",
		old:  `time.AfterFunc(c.cfg.NodeTimeout, func() { close(c.stopping) })`, new: `time.AfterFunc(c.cfg.TTL, func() { close(c.stopping) })`,
		caught: []string{"quorum.TestCloseFreesWhatIsHeldAndIsBounded"},
	},
	{
		name: "a lock won while Close ran is kept",
		rule: "it fails once the coordinator is closed",
		file: "quorum/hold.go",
		old:  `if !c.live(h) {`, new: `if c.live(h); false {`,
		caught: []string{"quorum.TestLockWonWhileCloseRunsIsGivenBack"},
	},
	{
		name: "force-release revokes only where it finds the holder",
		rule: "a node that missed the holder would let it restore the lock, unless it knows whom to refuse",
		file: "quorum/force.go",
		old:  `Holders: holders, Lives`, new: `Lives`,
		caught: []string{"quorum.TestForceReleaseStaysReleased"},
	},
	{
		name: "a mutex nests",
		rule: "a second Lock waits for the Unlock, whatever context it runs under",
		file: "quorum/mutex.go",
		old:  `m.c.Acquire(WithoutLease(ctx), m.name`, new: `m.c.Acquire(ctx, m.name`,
		caught: []string{"quorum.TestMutexDoesNotNest"},
	},
	{
		name: "a mutex whose lease was lost is open",
		rule: "two goroutines are never inside, whatever happens to the cluster",
		file: "quorum/mutex.go",
		old: `	m.lease = lease
	return nil`,
		new: `	m.lease = lease
	context.AfterFunc(lease.Context(context.Background()), func() { <-m.held })
	return nil`,
		caught: []string{"quorum.TestMutexStaysLockedInTheProcessAfterALoss"},
	},
	{
		name: "a mutex that was not locked unlocks",
		rule: "it panics if it is not locked, as sync.Mutex does",
		file: "quorum/mutex.go",
		old:  `panic(err.Error())`, new: `_ = err.Error()`,
		caught: []string{"quorum.TestUnlockOfAnUnlockedMutexPanics"},
	},
	{
		name: "force-release that never expires",
		rule: "whoever holds the lock by then is not who was meant",
		file: "quorum/survey.go",
		old:  `until := begun.Add(c.cfg.NodeTimeout)`, new: `until := begun.Add(1000 * c.cfg.NodeTimeout)`,
		caught: []string{"quorum.TestLateForceReleaseDoesNothing"},
	},
	{
		name: "force-release that nobody confirmed",
		rule: "no quorum confirmed: the lock may then be back",
		file: "quorum/force.go",
		old:  `if b.count().granted < c.need {`, new: `if false {`,
		caught: []string{"quorum.TestForceReleaseThatNoQuorumConfirmsSaysSo"},
	},
	{
		name: "a revocation ends before the lease",
		rule: "as long as the lease could",
		file: "quorum/force.go",
		old:  `lives = max(lives, a.reply.TTL)`, new: `lives = max(lives, 0*a.reply.TTL)`,
		caught: []string{"quorum.TestRevocationLivesAsLongAsTheLeaseEverywhere"},
	},
	{
		name: "a restated count that never expires",
		rule: "no request may take effect after the old end",
		file: "quorum/renewal.go",
		old: `		until: end, begun: now, ttl: ttl,
	})
	b.whenComplete(h.heal)`, new: `		begun: now, ttl: ttl,
	})
	_ = end
	b.whenComplete(h.heal)`,
		caught: []string{"quorum.TestRestatedCountThatArrivesAfterTheEndDoesNothing"},
	},
	{
		name: "a renewal that waits keeps the release out",
		rule: "a request that waits is replaced by a newer one",
		file: "quorum/lane.go",
		old:  `dropped, l.next = l.next, e`, new: `dropped = e
		if l.next == nil {
			dropped, l.next = nil, e
		}`,
		caught: []string{"quorum.TestReleaseReplacesARenewalThatWaits"},
	},
	{
		name: "a renewal forgets the nested holds",
		rule: "it carries the count",
		file: "quorum/renewal.go",
		old:  `h.round(context.Background(), "renew", h.count(), h.watched)`, new: `h.round(context.Background(), "renew", 1, h.watched)`,
		caught: []string{"quorum.TestHoldsAddedAtOnceCountEachOther"},
	},
	{
		name: "a shortened TTL is not reported",
		rule: "report a PTTL below expectation at renewals",
		file: "quorum/lane.go",
		old:  `renewed.TTL >= due-slack`, new: `renewed.TTL >= 0*(due-slack)`,
		caught: []string{"quorum.TestShortenedTTLIsReported"},
	},
	{
		name: "the local hold ignored",
		rule: "while this process has the lock itself, there is nobody to ask",
		file: "quorum/wait.go",
		old:  `if h == nil || h.isGone() {`, new: `if h == nil || true {`,
		caught: []string{"quorum.TestWaitersOfALockOfOurOwnAskNobody"},
	},
	{
		name: "the local hold forgotten after a while",
		rule: "whoever comes shall know that",
		file: "quorum/line.go",
		old:  `	case held: // `, new: `	case held && false: // `,
		caught: []string{"quorum.TestWaitersOfALockOfOurOwnAskNobody"},
	},
	{
		name: "the last word of our own lock is of another one",
		rule: "it was not asked, and need not be",
		file: "quorum/line.go",
		old: `if ln.ours != nil && !ln.ours.isGone() {
		return`, new: `if false {
		return`,
		caught: []string{"quorum.TestEndOfAWaitForALockOfOurOwnHasEveryNodesWord"},
	},
	{
		name: "gone only when a quorum says so",
		rule: "or all have answered",
		file: "quorum/hold.go",
		old:  `t.granted+t.held >= h.c.need || t.waiting == 0 {`, new: `t.granted+t.held >= h.c.need {`,
		caught: []string{"quorum.TestEndOfALeaseOfOurOwnLetsTheNextIn"},
	},
	{
		name: "the local hold believed in",
		rule: "the process may be the last to know that it has lost it",
		file: "quorum/wait.go",
		old:  `err == nil && holder != h.holder {`, new: `false && holder != h.holder && err == nil {`,
		caught: []string{"quorum.TestLocalHoldThatWasForceReleasedHoldsUpNobody"},
	},
}
