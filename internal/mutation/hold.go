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
		name: "old count restated after the end",
		rule: "an ended lease is never restored",
		file: "quorum/renewal.go",
		old: `Count: count, TTL: ttl, Token: h.token},
		until: end, begun: now, ttl: ttl,
	})
	b.whenComplete(h.heal)`,
		new: `Count: count, TTL: ttl, Token: h.token},
		begun: now, ttl: ttl,
	})
	b.whenComplete(h.heal)`,
		caught: []string{"quorum.TestRestatedCountRestoresNothingAfterTheEnd"},
	},
	{
		name: "renewal counted late",
		rule: "a round counts only if a quorum answers before the old end",
		file: "quorum/renewal.go",
		old:  `inTime := h.err == nil && h.c.clock.Now().Before(h.end)`, new: `inTime := h.err == nil`,
		caught: []string{"quorum.TestRenewalInFlightDuringASuspendDoesNotCount"},
	},
	{
		name: "an ended lease extended",
		rule: "an ended lease is never restored",
		file: "quorum/renewal.go",
		old: `	err, end, start := h.err, h.end, h.start
	h.mu.Unlock()
	if err != nil {`,
		new: `	err, end, start := h.err, h.end, h.start
	h.mu.Unlock()
	if err != nil && !end.After(start) {`,
		caught: []string{"quorum.TestRenewalOfAReleasedLeaseSendsNothing"},
	},
	{
		name: "validity of a renewal from its answer",
		rule: "the new validity counts from before the first send",
		file: "quorum/renewal.go",
		old:  `return h.extended(now, extend)`, new: `return h.extended(h.c.clock.Now(), extend)`,
		caught: []string{"quorum.TestRenewedLeaseEndsBeforeItsKeys"},
	},
	{
		name: "a renewal moves the end back",
		rule: "never shorten",
		file: "quorum/renewal.go",
		old:  `if end.After(h.end) {`, new: `if true {`,
		caught: []string{"quorum.TestNoRenewalMovesTheEndBack"},
	},
	{
		name: "lost only when all nodes are others'",
		rule: "more than N - quorum nodes with another holder, or revoked: the lease ends at once",
		file: "quorum/renewal.go",
		old:  `case t.held > len(h.c.nodes)-h.c.need:`, new: `case false:`,
		caught: []string{"quorum.TestLeaseEndsAtOnceWhenMoreThanASpareMinorityBelongsToOthers"},
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
		old:  `return l.present && l.last.Outcome == Granted && l.fence >= token`, new: `return l.present && l.last.Outcome == Granted`,
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
		name: "Done only after the key has expired",
		rule: "Done is closed before any node can have expired the key",
		file: "quorum/hold.go",
		old:  `h.watch = c.watchdog.Watch(h, h.renewal(), h.end)`, new: `h.watch = c.watchdog.Watch(h, h.renewal(), h.end.Add(h.ttl))`,
		caught: []string{"quorum.TestLeaseWithALeaseTimeIsNotRenewed"},
	},
	{
		name: "a loss cancels no context",
		rule: "its context cancelled",
		file: "quorum/lease.go",
		old:  `cancels = append(cancels, cancel)`, new: `_ = cancel`,
		caught: []string{"quorum.TestContextEndsWithItsParentAndWithItsLease"},
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
		old:  `h.leave(h.terms, script.Free, h.token, h.departed.put)`, new: `h.leave(h.terms, script.Free, 0, h.departed.put)`,
		caught: []string{"quorum.TestReleaseRaisesTheFenceOfNodesThatWereMissed"},
	},
	{
		name: "release only where the lock was seen",
		rule: "nothing of ours can be there, and the node knows the token",
		file: "quorum/farewell.go",
		old:  `if !present && fence >= req.Token {`, new: `if !present {`,
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
		caught: []string{"quorum.TestManyNestedHoldsAtOnce"},
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
		caught: []string{"quorum.TestCloseInTheMiddleOfEverything"},
	},
	{
		name: "force-release revokes only where it finds the holder",
		rule: "a node that missed the holder would let it restore the lock, unless it knows whom to refuse",
		file: "quorum/force.go",
		old:  `Holders: holders, Lives`, new: `Lives`,
		caught: []string{"quorum.TestForceReleaseStaysReleased"},
	},
	{
		name: "force-release confirmed by one node",
		rule: "if no quorum confirmed, the lock may be back",
		file: "quorum/force.go",
		old:  `if b.count().granted < c.need {`, new: `if b.count().granted < 1 {`,
		caught: []string{"quorum.TestForceReleaseThatAQuorumDidNotConfirmSaysSo"},
	},
	{
		name: "revoked for no longer than a key",
		rule: "lives as long as its lease could",
		file: "quorum/force.go",
		old:  `lives = sum`, new: `lives /= 1000`,
		caught: []string{"quorum.TestForceReleasedHolderStaysOutForAsLongAsItsLeaseCould"},
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
}
