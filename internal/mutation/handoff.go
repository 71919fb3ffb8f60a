package main

// handoffVariants break how a hold is handed on within a process.
var handoffVariants = []variant{
	{
		name: "a tracer that panics keeps the lock from the waiter",
		rule: "the waiter was promised the lock, so it gets it even if a tracer panics",
		file: "quorum/handoff.go",
		old: `	defer func() { w.handed <- lease }()
	for _, cancel := range cancels {
		cancel(ErrReleased)
	}
`, new: `	for _, cancel := range cancels {
		cancel(ErrReleased)
	}
	w.handed <- lease
`,
		caught: []string{"quorum.TestTracerThatPanicsInReleaseBlocksNobody"},
	},
	{
		name: "one token for all who are handed a hold",
		rule: "with a token of its own",
		file: "quorum/handoff.go",
		old:  `h.token, h.passed = h.token+1, event{}`, new: `h.token, h.passed = h.token, event{}`,
		caught: []string{"quorum.TestHoldIsHandedOnWithinTheProcess"},
	},
	{
		name: "tokens for a hand-off that no node granted",
		rule: "the tokens were all granted at once",
		file: "quorum/handoff.go",
		old:  `case h.token == h.fence, h.kept:`, new: `case h.kept:`,
		caught: []string{"quorum.TestHoldIsHandedOnAsOftenAsThereAreTokens"},
	},
	{
		name: "nodes store the first token of a hand-off",
		rule: "a node sets its fence that much higher",
		file: "script/acquire.lua",
		old:  `fence = math.max(fence + 1, proposal) + more`, new: `fence = math.max(fence + 1, proposal)`,
		caught: []string{"quorum.TestTokensOfAHandOffAreStoredBeforeTheyAreUsed", "script.TestTokensThatAreAskedForBesidesLieBelowTheFence"},
	},
	{
		name: "the highest token of a hand-off first",
		rule: "the tokens are the ones up to the highest fence",
		file: "quorum/hold.go",
		old:  `a.highest - a.more,`, new: `a.highest,`,
		caught: []string{"quorum.TestHoldIsHandedOnWithinTheProcess"},
	},
	{
		name: "a hold is handed on for ever",
		rule: "others get their chance as soon as a turn is over",
		file: "quorum/handoff.go",
		old:  `case now.Sub(h.began) >= turn, `, new: `case `,
		caught: []string{"quorum.TestHoldIsHandedOnForNoLongerThanATurn"},
	},
	{
		name: "a hold that is about to end is handed on",
		rule: "handed on only while half of its TTL is left",
		file: "quorum/handoff.go",
		old:  `, h.end.Sub(now) < h.ttl/2:`, new: `:`,
		caught: []string{"quorum.TestHoldThatIsAboutToEndIsNotHandedOn"},
	},
	{
		name: "a hold under MaxHold is handed on",
		rule: "ends at a moment of its own and is not handed on",
		file: "quorum/handoff.go",
		old:  `if ln.c.cfg.MaxHold > 0 {`, new: `if false {`,
		caught: []string{"quorum.TestHoldIsHandedOnOnlyToWhoWantsTheSame"},
	},
	{
		name: "a hold with a lease time is handed on",
		rule: "ends at a moment of its own and is not handed on",
		file: "quorum/handoff.go",
		old:  `return t.watched && other.watched && t.ttl`, new: `return t.watched == other.watched && t.ttl`,
		caught: []string{"quorum.TestHoldIsHandedOnOnlyToWhoWantsTheSame"},
	},
	{
		name: "a watched hold is handed to who wants a lease time",
		rule: "nor is one to somebody who asked for another TTL",
		file: "quorum/handoff.go",
		old:  `return t.watched && other.watched && t.ttl`, new: `return other.watched && t.ttl`,
		caught: []string{"quorum.TestHoldIsHandedOnOnlyToWhoWantsTheSame"},
	},
	{
		name: "a hold that is nested in is handed on",
		rule: "the lock itself is released with the last handle",
		file: "quorum/handoff.go",
		old:  `, len(h.handles) > 1:`, new: `:`,
		caught: []string{"quorum.TestHoldIsHandedOnWithItsLastHandle"},
	},
	{
		name: "a context nests in what was handed on",
		rule: "what was handed on to somebody else is not held any more",
		file: "quorum/hold.go",
		old:  `	if l.wasHandedOn() {`, new: `	if false {`,
		caught: []string{"quorum.TestContextOfAHoldThatWasHandedOnIsAStrangers"},
	},
	{
		name: "a nested hold that is under way outlives a hand-off",
		rule: "adds a handle beside those with the same token",
		file: "quorum/hold.go",
		old:  `case h.leaving, h.token != token:`, new: `case h.leaving:`,
		caught: []string{"quorum.TestNestedHoldDoesNotOutliveAHandOff"},
	},
	{
		name: "what a waiter was handed and did not want stays",
		rule: "gives back what was handed to a waiter whose wait was over",
		file: "quorum/wait.go",
		old:  `	defer w.decline() // when it has left`, new: ``,
		caught: []string{"quorum.TestHoldThatNobodyTakesIsHandedOnOrGivenBack"},
	},
	{
		name: "what was force-released here is handed on",
		rule: "what this process holds under that name is not to become anybody else's",
		file: "quorum/handoff.go",
		old:  `h.token == h.fence, h.kept:`, new: `h.token == h.fence:`,
		caught: []string{"quorum.TestHoldThatWasForceReleasedHereIsNotHandedOn"},
	},
	{
		name: "a renewal tells of a hold that was handed on",
		rule: "it may have been given back meanwhile, and the hold go on",
		file: "quorum/lease.go",
		old:  `	return l.Err() // it may`, new: `	return nil // it may`,
		caught: []string{"quorum.TestHandleOfAHoldThatWasHandedOnKnowsNothing"},
	},
	{
		name: "votes tell of a hold that was handed on",
		rule: "Unknown everywhere if the hold was handed on",
		file: "quorum/lease.go",
		old:  `if l.wasHandedOn() {`, new: `if false {`,
		caught: []string{"quorum.TestHandleOfAHoldThatWasHandedOnKnowsNothing"},
	},
	{
		name: "tokens for those who cannot be handed a hold",
		rule: "may have a hold of these terms without asking the nodes",
		file: "quorum/handoff.go",
		old:  `if n == mostHandedOn || !w.terms.alike(t) {`, new: `if w == nil || n == mostHandedOn {`,
		caught: []string{"quorum.TestTokensAreAskedForOnlyForThoseWhoMayUseThem"},
	},
	{
		name: "taken again at once after a hand-off",
		rule: "does not take it once more before they had a chance",
		file: "quorum/crowd.go",
		old:  `!ln.crowd.handed && `, new: ``,
		caught: []string{"quorum.TestOthersHaveAChanceAfterAHandOff"},
	},
}
