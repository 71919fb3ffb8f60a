package main

// clockVariants break what sees that a node's clock runs off.
var clockVariants = []variant{
	{
		name: "a node whose clock ran off votes",
		rule: "a node that runs or jumps beyond the drift bound is reported, and its vote not counted while so",
		file: "quorum/lane.go",
		old:  `left := l.node.pace.off(a.at, l.c.guard.ttl()); left > 0 {`, new: `left := time.Duration(0); left > 0 {`,
		caught: []string{"quorum.TestNodeWhoseClockIsSetDoesNotMakeASecondQuorum"},
	},
	{
		name: "only lanes look at clocks",
		rule: "every answer carries what the node's clock showed",
		file: "quorum/survey.go",
		old:  `c.watch(n, reply.Now, begun, back)`, new: `_ = n`,
		caught: []string{"quorum.TestNodeWhoseClockIsSetDoesNotMakeASecondQuorum"},
	},
	{
		name: "a clock that is behind is none of our business",
		rule: "it is the same whether a node's clock is ahead or behind",
		file: "quorum/pace.go",
		old:  `behind > p.drift(`, new: `false && behind > p.drift(`,
		caught: []string{"quorum.TestClockThatIsSetBackIsReported", "quorum.TestJumpThatTheDriftCannotExplainIsFound"},
	},
	{
		name: "any jump counts for the guard time",
		rule: "a clock that ran off by d harms the leases whose drift is less than d",
		file: "quorum/pace.go",
		old:  `min(float64(century), float64(p.total)/p.factor)`, new: `float64(century)`,
		caught: []string{"quorum.TestSmallJumpCostsAVoteForAShortTime"},
	},
	{
		name: "jumps count no longer than they are seen",
		rule: "they are all over when that time has passed",
		file: "quorum/pace.go",
		old:  `p.since.Add(guard)`, new: `p.since.Add(guard / 10)`,
		caught: []string{"quorum.TestNodeWhoseClockIsSetDoesNotMakeASecondQuorum"},
	},
	{
		name: "a bound is true at the answer",
		rule: "each bound comes with the moment for which it is true",
		file: "quorum/pace.go",
		old:  `bound{shown - asked.Micros(), asked}`, new: `bound{shown - asked.Micros(), answered}`,
		caught: []string{"quorum.TestClocksWithinTheDriftAreNotBlamed"},
	},
	{
		name: "a good reading is good for ever",
		rule: "of two readings the one counts that tells more now, after what they lose with time",
		file: "quorum/pace.go",
		old:  `lost := int64(p.factor`, new: `lost := int64(0*p.factor`,
		caught: []string{"quorum.TestOldReadingHidesNoJump"},
	},
	{
		name: "late answers tell of a clock that was set",
		rule: "what was asked before tells of a clock that has been set since",
		file: "quorum/pace.go",
		old:  `if asked.Before(p.since) {`, new: `if false {`,
		caught: []string{"quorum.TestAnswerFromBeforeTheJumpIsNotASecondOne"},
	},
	{
		name: "another machine is blamed for its clock",
		rule: "the node has lost its memory, and may be another machine with another clock",
		file: "quorum/guard.go",
		old:  `n.pace.forgot(r.Incarnation, g.c.clock.Now())`, new: `_ = n`,
		caught: []string{"quorum.TestReplacedNodeIsNotBlamedForItsClock"},
	},
	{
		name: "each bit of a slew counts alone",
		rule: "d is what it ran off in all since the last guard time",
		file: "quorum/pace.go",
		old:  `p.total = min(p.total+worst, century)`, new: `p.total = min(worst, century)`,
		caught: []string{"quorum.TestClockThatIsSlewedDoesNotVoteForAsLongAsAfterAJump"},
	},
	{
		name: "a jump is the least it can be",
		rule: "how much d is at most, the width of both readings tells",
		file: "quorum/pace.go",
		old:  `worst = max(ahead, most)`, new: `worst = ahead; _ = most`,
		caught: []string{"quorum.TestJumpIsTakenForTheMostItCanBe"},
	},
	{
		name: "nobody is asked how long the longest TTL is",
		rule: "a clock that ran off is a reason to ask all nodes for it",
		file: "quorum/pace.go",
		old:  `	c.guard.ask()` + "\n", new: ``,
		caught: []string{"quorum.TestClockThatRanOffIsAReasonToAskForTheLongestTTL"},
	},
}
