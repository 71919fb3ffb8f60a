package main

// guardVariants break the restart guard.
var guardVariants = []variant{
	{
		name: "restores always count in quarantine",
		rule: "a renewal there counts only while the node's own last counted vote for this lease has not run out",
		file: "quorum/lane.go",
		old:  `if a.reply.Quarantine > 0 && !l.c.clock.Now().Before(l.voted) {`, new: `if false {`,
		caught: []string{"quorum.TestRestoreInQuarantineIsNoVoteForWhoHadNone"},
	},
	{
		name: "acquires carry no incarnation",
		rule: "acquire and restore carry the incarnation checked at connect",
		file: "node/run.go",
		old:  `Incarnation: c.node.incarnation()`, new: `Incarnation: ""`,
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
		name: "the configured guard time is ignored",
		rule: "Config.GuardTime is the longest TTL that any client of these nodes uses",
		file: "quorum/guard.go",
		old:  `max(c.cfg.TTL, c.cfg.GuardTime)`, new: `c.cfg.TTL`,
		caught: []string{"quorum.TestGuardTimeIsAtLeastWhatWasConfigured"},
	},
}
