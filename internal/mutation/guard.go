package main

// guardVariants break the restart guard.
var guardVariants = []variant{
	{
		name: "a decision about a new cluster is cut off",
		rule: "were it cut off, some nodes of a new cluster would be settled and others not",
		file: "quorum/coordinator.go",
		old:  "	c.guard.end(2*c.cfg.NodeTimeout - time.Since(begun))\n", new: "	_ = begun\n",
		caught: []string{"quorum.TestClusterIsFoundedWholeByWhoLeavesAtOnce"},
	},
	{
		name: "restores always count in quarantine",
		rule: "a renewal there counts only while the node's own last counted vote for this lease has not run out",
		file: "quorum/lane.go",
		old:  `if a.reply.Quarantine > 0 && !a.at.Before(l.voted) {`, new: `if false {`,
		caught: []string{"quorum.TestRestoreInQuarantineIsNoVoteForWhoHadNone"},
	},
	{
		name: "a vote in quarantine is judged by when it was asked for",
		rule: "a renewal there counts only while the node's own last counted vote for this lease has not run out",
		file: "quorum/lane.go",
		old:  `if a.reply.Quarantine > 0 && !a.at.Before(l.voted) {`, new: `if a.reply.Quarantine > 0 && !e.begun.Before(l.voted) {`,
		caught: []string{"quorum.TestVoteInQuarantineIsJudgedByWhenItWasAnswered"},
	},
	{
		name: "one node is enough to decide about nodes without a record",
		rule: "too few to know how long the longest TTL is",
		file: "quorum/settle.go",
		old:  `case first.answered < g.c.need:`, new: `case first.answered < 1:`,
		caught: []string{"quorum.TestNothingIsDecidedWithoutAQuorum"},
	},
	{
		name: "a script that was cut off midway is not rolled back",
		rule: "the holder may have the lock on this node",
		file: "quorum/lane.go",
		old: `		if node.Sent(a.err) {
`, new: `		if node.Sent(a.err) && !node.Refused(a.err) {
`,
		caught: []string{"quorum.TestScriptThatWasCutOffMidwayIsRolledBack"},
	},
	{
		name: "acquires carry no incarnation",
		rule: "acquire and restore carry the incarnation checked at connect",
		file: "node/stream.go",
		old:  `Incarnation: s.node.incarnation()`, new: `Incarnation: ""`,
		caught: []string{"quorum.TestFlushedNodeDoesNotMakeASecondQuorum"},
	},
	{
		name: "nodes in quarantine grant",
		rule: "in quarantine fresh grants are no votes",
		file: "script/acquire.lua",
		old:  `elseif quarantine > 0 then`, new: `elseif false then`,
		caught: []string{"quorum.TestRestartedEmptyNodeDoesNotMakeASecondQuorum"},
	},
	{
		name: "a cluster is new by one look",
		rule: "a second look that finds the same incarnations proves a moment without a lock anywhere",
		file: "quorum/settle.go",
		old:  `second := g.look(); second.isNew() && second.same(first)`, new: `second := first; true`,
		caught: []string{"quorum.TestClusterIsNewOnlyIfAllNodesWereNewAtOneMoment"},
	},
	{
		name: "a longer TTL is not put on record",
		rule: "a grant longer than the recorded TTL raises it in the same script",
		file: "script/acquire.lua",
		old:  `if longest and longest <`, new: `if false and longest <`,
		caught: []string{"quorum.TestQuarantineLastsAsLongAsTheLongestTTLInUse"},
	},
	{
		name: "connections are not checked",
		rule: "every new connection checks it before its first script",
		file: "node/node.go",
		old:  `if n.guard.on {`, new: `if false {`,
		caught: []string{"node.TestFirstScriptOfEveryConnectionComesAfterACheck"},
	},
	{
		name: "an older check may have the last word about twins",
		rule: "of two checks the one that was compared last is right",
		file: "quorum/guard.go",
		old: `	if g.compare(i, r.Run) {
		g.c.sameServer.Store(true)
	} else if g.apart() {
		g.c.sameServer.Store(false)
	}
	g.mu.Unlock()
	g.c.rests(n, number, r.Quarantine)`,
		new: `	twins := g.compare(i, r.Run)
	mended := !twins && g.apart()
	if twins {
		g.c.sameServer.Store(true)
	}
	g.mu.Unlock()
	g.c.rests(n, number, r.Quarantine)
	if mended {
		g.c.sameServer.Store(false)
	}`,
		caught: []string{"quorum.TestOneServerUnderTwoAddressesIsNotForgottenForAnOlderCheck"},
	},
	{
		name: "a node in quarantine is no reason to ask the others",
		rule: "one of them may have been told of a longer TTL after this client had last looked at its record",
		file: "quorum/quarantine.go",
		old:  `if q.incarnation == r.Incarnation && q.until.Before(q.askedUntil.Add(time.Second)) {`, new: `if true {`,
		caught: []string{"quorum.TestQuarantineAfterAnOldSnapshotLastsAsLongForWhoWasThereBefore"},
	},
	{
		name: "a node that could not be asked about a quarantine is not asked again",
		rule: "and again until an answer comes or a quarantine is over for whose sake it is done",
		file: "quorum/quarantine.go",
		old:  `if w.answers == 0 || left <= 0 &&`, new: `if err != nil || w.answers == 0 || left <= 0 &&`,
		caught: []string{"quorum.TestQuarantineAfterAnOldSnapshotLastsAsLongForWhoWasThereBefore"},
	},
	{
		name: "the others are asked once about a quarantine",
		rule: "a lease that was being taken when the node forgot may not have got to them the first time",
		file: "quorum/quarantine.go",
		old:  `g.watch(j, 2)`, new: `g.watch(j, 1)`,
		caught: []string{"quorum.TestQuarantineLastsAsLongAsALeaseThatWasBeingTaken"},
	},
	{
		name: "Close cuts off what is asked about a quarantine",
		rule: "who finds a quarantine and goes leaves it as long as it should be",
		file: "quorum/quarantine.go",
		old:  `if g.ended && g.checks == 0 {`, new: `if true {`,
		caught: []string{"quorum.TestWhoFindsAQuarantineAndGoesLeavesItAsLongAsItShouldBe"},
	},
	{
		name: "every restart of a node has watchers of its own",
		rule: "there is at most one for each node, however often nodes are restarted",
		file: "quorum/quarantine.go",
		old:  `running := w.answers > 0`, new: `running := false`,
		caught: []string{"quorum.TestCrashLoopOfANodeCostsNoGoroutines"},
	},
	{
		name: "nodes are told of a TTL that nobody was granted",
		rule: "the TTL of an attempt that fails would lengthen every later quarantine",
		file: "quorum/guard.go",
		old:  `TTL: g.granted,`, new: `TTL: g.longestTTL,`,
		caught: []string{"quorum.TestRefusedTryWithALongLeaseTimeLengthensNoQuarantine"},
	},
	{
		name: "a refused lease time is remembered",
		rule: "counts a TTL as long as an attempt asks for it",
		file: "quorum/quarantine.go",
		old: `	g.attempts[ttl]++
`, new: `	g.longest = ttl
	g.attempts[ttl]++
`,
		caught: []string{"quorum.TestRefusedTryWithALongLeaseTimeLengthensNoQuarantine"},
	},
	{
		name: "a granted lease time does not prolong a quarantine",
		rule: "records that a lease of this client has a TTL, and tells the nodes in quarantine",
		file: "quorum/quarantine.go",
		old: `		g.longest = ttl
		g.prolong()
`, new: `		g.longest = ttl
`,
		caught: []string{"quorum.TestQuarantineIsProlongedForALeaseThatIsGranted"},
	},
	{
		name: "a quarantine that is too long is left to the next connection",
		rule: "it began while the node's clock was ahead, and the check sets it right",
		file: "quorum/quarantine.go",
		old:  `left-margin > g.longest && !q.checking {`, new: `false && !q.checking {`,
		caught: []string{"quorum.TestQuarantineIsShortenedWhenTheClockIsRightAgain"},
	},
	{
		name: "an older check says how a node is",
		rule: "a later one has found what counts",
		file: "quorum/condition.go",
		old:  `if check < h.check {`, new: `if false {`,
		caught: []string{"quorum.TestQuarantineIsNotForgottenForAnOlderCheck"},
	},
	{
		name: "the configured guard time is ignored",
		rule: "Config.GuardTime is the longest TTL that any client of these nodes uses",
		file: "quorum/guard.go",
		old:  `max(c.cfg.TTL, c.cfg.GuardTime)`, new: `c.cfg.TTL`,
		caught: []string{"quorum.TestGuardTimeIsAtLeastWhatWasConfigured"},
	},
	{
		name: "votes are not remembered",
		rule: "while the node's own last counted vote has not run out",
		file: "quorum/lane.go",
		old:  `		l.voted = till`, new: `		_ = till`,
		caught: []string{"quorum.TestFlushedNodeDoesNotMakeASecondQuorum"},
	},
	{
		name: "a quarantine is not prolonged",
		rule: "a node that comes back from an old snapshot knows only what was in use then",
		file: "quorum/guard.go",
		old:  `	g.prolong()` + "\n", new: ``,
		caught: []string{"quorum.TestQuarantineAfterAnOldSnapshotLastsAsLongAsAnyNodeKnows"},
	},
	{
		name: "an acquire that was meant for another incarnation",
		rule: "any difference is no vote",
		file: "script/acquire.lua",
		old:  `if record[1] ~= ARGV[2] then`, new: `if false then`,
		caught: []string{"script.TestAnotherIncarnationDoesNotVote"},
	},
	{
		name: "a renewal that was meant for another incarnation",
		rule: "any difference is no vote",
		file: "script/renew.lua",
		old:  `if record[1] ~= ARGV[2] then`, new: `if false then`,
		caught: []string{"script.TestAnotherIncarnationDoesNotVote"},
	},
	{
		name: "an undecided node grants",
		rule: "nobody has decided yet whether this node is new or has forgotten",
		file: "script/acquire.lua",
		old: `  elseif not record[2] then
    return {'unsettled', 0, -2, '', 0, now}
  end`, new: `  end
  record[2] = record[2] or 0`,
		caught: []string{"script.TestUndecidedNodeDoesNotVote"},
	},
	{
		name: "an undecided node renews",
		rule: "nobody has decided yet whether this node is new or has forgotten",
		file: "script/renew.lua",
		old: `  elseif not record[2] then
    return {'unsettled', 0, -2, '', 0, now}
  end`, new: `  end
  record[2] = record[2] or 0`,
		caught: []string{"script.TestUndecidedNodeDoesNotVote"},
	},
	{
		name: "a longer TTL is not put on record by a renewal",
		rule: "the lock may have been granted elsewhere only",
		file: "script/renew.lua",
		old:  `if longest and longest <`, new: `if false and longest <`,
		caught: []string{"script.TestEveryGrantLeavesItsTTLOnRecord"},
	},
	{
		name: "a server that was started again is the one on record",
		rule: "another run id: new incarnation, quarantine",
		file: "script/check.lua",
		old:  `if record[1] and record[2] == run and record[3] == id then`, new: `if record[1] and record[3] == id then`,
		caught: []string{"script.TestRestartBeginsAnIncarnationInQuarantine"},
	},
	{
		name: "a restart without a quarantine",
		rule: "in quarantine until whatever it may have forgotten has expired",
		file: "script/check.lua",
		old:  `remembers and 0 or now + (ttl + lingers) * 1000`, new: `0`,
		caught: []string{"script.TestRestartBeginsAnIncarnationInQuarantine"},
	},
	{
		name: "a restart ends the quarantine before it",
		rule: "never shortens a quarantine",
		file: "script/check.lua",
		old:  `local till = math.max(tonumber(record[4]),`, new: `local till = math.max(0,`,
		caught: []string{"script.TestQuarantineOfARestartIsTheLongest"},
	},
	{
		name: "a restart forgets the longest TTL",
		rule: "the longest TTL in use",
		file: "script/check.lua",
		old:  `ttl = math.max(ttl, tonumber(ARGV[3]))`, new: `ttl = tonumber(ARGV[3])`,
		caught: []string{"script.TestQuarantineOfARestartIsTheLongest"},
	},
	{
		name: "durable now is durable",
		rule: "the record had noted appendfsync=always, and it still holds",
		file: "script/check.lua",
		old:  `record[7] == 'yes' and ARGV[5] == 'yes'`, new: `ARGV[5] == 'yes'`,
		caught: []string{"script.TestOnlyWhatWasAndIsDurableRemembers"},
	},
	{
		name: "what is settled is settled again",
		rule: "never shorten a quarantine that somebody else found necessary",
		file: "script/settle.lua",
		old:  `if record[2] then`, new: `if false then`,
		caught: []string{"script.TestWhatIsSettledIsNeverChanged"},
	},
	{
		name: "another node is settled than was decided upon",
		rule: "the decision was about a server, and this may be another one",
		file: "script/settle.lua",
		old:  `if record[1] ~= ARGV[2] or run ~= ARGV[3] then`, new: `if false then`,
		caught: []string{"script.TestSettleOfAnotherNodeThanWasDecidedUpon"},
	},
	{
		name: "a decision that never expires",
		rule: "requests expire: what the network delivers later does nothing",
		file: "script/settle.lua",
		old:  `if last > 0 and now > last then`, new: `if false then`,
		caught: []string{"script.TestSettleExpires"},
	},
	{
		name: "a force-release that its node does not expire",
		rule: "whoever holds the lock by then is not who was meant",
		file: "script/force_release.lua",
		old:  `if last > 0 and now > last then`, new: `if false then`,
		caught: []string{"script.TestRequestsExpireToTheMicrosecond"},
	},
	{
		name: "doubt is forgotten",
		rule: "READONLY, LOADING force a re-check",
		file: "node/call.go",
		old:  `if unsure(err) {`, new: `if false {`,
		caught: []string{"node.TestAnswersThatGiveDoubtAreFollowedByACheck"},
	},
	{
		name: "a server that forgot its scripts is not checked",
		rule: "the server forgot it, and then perhaps more than that",
		file: "node/call.go",
		old:  `n.again(c, n.guard.on && !c.guards)`, new: `n.again(c, false)`,
		caught: []string{"node.TestServerThatForgotAScriptIsCheckedBeforeItGetsTheSource"},
	},
	{
		name: "a stranger is not looked at",
		rule: "any difference forces a re-check",
		file: "node/call.go",
		old:  `n.again(c, reply.Status == script.Stranger)`, new: `n.again(c, false)`,
		caught: []string{"node.TestStrangerIsCheckedAndAskedOnceMore"},
	},
	{
		name: "two looks at two clusters",
		rule: "a second look that finds the same incarnations proves a moment without a lock",
		file: "quorum/settle.go",
		old:  `second.isNew() && second.same(first)`, new: `second.isNew()`,
		caught: []string{"quorum.TestClusterIsNotNewWhileANodeForgetsBetweenTwoLooks"},
	},
	{
		name: "a vote that did not count is trusted in a quarantine",
		rule: "only while the node's last vote for this holder has not run out",
		file: "quorum/lane.go",
		old: `ranOff(left)
		return a`, new: `ranOff(left)`,
		caught: []string{"quorum.TestVoteOfANodeWhoseClockRanOffDoesNotCountInAQuarantine"},
	},
	{
		name: "a quarantine is not reported",
		rule: "a node was restarted and may have forgotten locks",
		file: "quorum/guard.go",
		old: `	if r.Quarantine > 0 {
		g.warnOf(`, new: `	if false {
		g.warnOf(`,
		caught: []string{"quorum.TestNodeThatIsKeptFromVotingIsReported"},
	},
}
