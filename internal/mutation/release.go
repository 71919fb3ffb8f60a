package main

// releaseVariants break how a lock is given back, by its holder, by Close, and by force.
var releaseVariants = []variant{
	{
		name: "release without the token",
		rule: "a node that was missed must not be the only one left that remembers too little",
		file: "quorum/hold.go",
		old:  `h.leave(h.terms, script.Free, h.fence, (`, new: `h.leave(h.terms, script.Free, 0, (`,
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
		name: "put back by a renewal that waited",
		rule: "an ended lease is never restored",
		file: "quorum/errand.go",
		old:  `l.waits = l.over || !decided`, new: `l.waits = !decided`,
		caught: []string{"quorum.TestRenewalThatWaitedDoesNotPutBackWhatHasEnded"},
	},
	{
		name: "a farewell waits for what is not sent any more",
		rule: "nobody who takes leave waits for it",
		file: "quorum/lane.go",
		old:  `return l.busy && (!l.waits || !l.over)`, new: `return l.busy`,
		caught: []string{"quorum.TestRenewalThatWaitedDoesNotPutBackWhatHasEnded"},
	},
	{
		name: "a last word that is out of date",
		rule: "\"gone\" was true when the node said so",
		file: "quorum/farewell.go",
		old:  `if present, _ := l.left(); !present || a.err != nil {`, new: `if present, _ := l.left(); !present || a.vote.Node != "" {`,
		caught: []string{"quorum.TestLastWordOfAFarewell"},
	},
	{
		name: "the waits of Close add up",
		rule: "Close takes at most twice the node timeout",
		file: "quorum/coordinator.go",
		old:  `c.guard.end(2*c.cfg.NodeTimeout - time.Since(begun))`, new: `c.guard.end(c.cfg.NodeTimeout + 0*time.Since(begun))`,
		caught: []string{"quorum.TestCloseIsBoundedWhateverBeginsMeanwhile"},
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
		name: "force-release revokes only where it finds the holder",
		rule: "a node that missed the holder would let it restore the lock, unless it knows whom to refuse",
		file: "quorum/force.go",
		old:  `Holders: f.holders, Lives`, new: `Lives`,
		caught: []string{"quorum.TestForceReleaseStaysReleased"},
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
		rule: "fewer than a quorum confirmed that the keys are gone",
		file: "quorum/force.go",
		old:  `t.granted+t.held < c.need {`, new: `false && t.held < c.need {`,
		caught: []string{"quorum.TestForceReleaseThatNoQuorumConfirmsSaysSo"},
	},
	{
		name: "a revocation ends before the lease",
		rule: "as long as the lease could",
		file: "quorum/force.go",
		old:  `longest = max(longest, a.reply.TTL)`, new: `longest = max(longest, 0*a.reply.TTL)`,
		caught: []string{"quorum.TestRevocationLivesAsLongAsTheLeaseEverywhere"},
	},
	{
		name: "gone only when a quorum says so",
		rule: "or all have answered",
		file: "quorum/hold.go",
		old:  `t.granted+t.held >= h.c.need || t.waiting == 0 {`, new: `t.granted+t.held >= h.c.need {`,
		caught: []string{"quorum.TestEndOfALeaseOfOurOwnLetsTheNextIn"},
	},
	{
		name: "a revocation without a margin",
		rule: "a margin for a renewal that was under way",
		file: "quorum/force.go",
		old: `f.lives = sum
`, new: `_ = sum
`,
		caught: []string{"quorum.TestRevocationOutlivesARenewalThatWasUnderWay"},
	},
	{
		name: "keys are deleted when a quorum has stored the revocation",
		rule: "after the loss of one node, those that do not know of the revocation are no quorum",
		file: "quorum/force.go",
		old:  `return min(n, n-need+2)`, new: `return min(n, need)`,
		caught: []string{
			"quorum.TestForceReleaseThatReachesABareMajorityMakesNoSecondHolder", "quorum.TestForceReleaseNeedsEnoughRevocations",
		},
	},
	{
		name: "a revoked answer is one vote of many",
		rule: "that one answer is enough, whatever the others say and however late it comes",
		file: "quorum/renewal.go",
		old:  `if a.reply.Status == script.Revoked {`, new: `if false {`,
		caught: []string{"quorum.TestSingleRevokedAnswerEndsTheLease"},
	},
	{
		name: "what the first look found is forgotten",
		rule: "it reports whether anybody held the lock",
		file: "quorum/force.go",
		old:  `return true, f.delete()`, new: `return false, f.delete()`,
		caught: []string{"quorum.TestForceReleaseTellsOfAHolderThatOnlyTheFirstLookFound"},
	},
	{
		name: "gone as soon as one node says so",
		rule: "gone is closed when a quorum of nodes has confirmed that, or all have answered",
		file: "quorum/hold.go",
		old:  `t.granted+t.held >= h.c.need || t.waiting == 0`, new: `t.granted+t.held >= 1 || t.waiting == 0`,
		caught: []string{"quorum.TestWaiterOfALockOfOurOwnWaitsUntilAQuorumHasLetGo"},
	},
	{
		name: "the hold count of the fewest nodes",
		rule: "how many holds Holder has, by most of its nodes",
		file: "quorum/inspect.go",
		old:  `n > counts[s.HoldCount] ||`, new: `n < counts[s.HoldCount] ||`,
		caught: []string{"quorum.TestInspectTellsTheHoldCountOfMostNodes"},
	},
}
