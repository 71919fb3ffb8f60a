package main

// sentinelVariants break the rules for nodes behind Sentinel.
var sentinelVariants = []variant{
	{
		name: "the sentinels' word is good for ever",
		rule: "a server is the node only for reliance after more than half of the sentinels named it",
		file: "node/sentinel.go",
		old:  `until.Sub(s.node.clock.Now()) > reliance/2`, new: `true`,
		caught: []string{"node.TestSentinelsAreAskedAgainAfterAWhile"},
	},
	{
		name: "the sentinels' word is good from the answer",
		rule: "a server is the node only for reliance after more than half of the sentinels named it",
		file: "node/sentinel.go",
		old:  `s.take(addr, asked)`, new: `s.take(addr, s.node.clock.Now())`,
		caught: []string{"node.TestWordOfTheSentinelsIsGoodFromTheQuestion"},
	},
	{
		name: "one sentinel decides",
		rule: "two majorities share one",
		file: "node/sentinel.go",
		old:  `need := len(s.asked)/2 + 1`, new: `need := 1`,
		caught: []string{"node.TestNodeIsTheServerThatMostOfItsSentinelsName"},
	},
	{
		name: "a request outlives the sentinels' word",
		rule: "a request is answered within that time or not at all, on the server's clock too",
		file: "node/call.go",
		old:  `		c.Until = relied`, new: `		_ = relied`,
		caught: []string{"node.TestRequestEndsWithTheWordOfTheSentinels"},
	},
	{
		name: "connections to a replaced master stay",
		rule: "with the first word of a new master all connections to the old one are closed",
		file: "node/sentinel.go",
		old:  `			_ = p.Conn.Close()`, new: `			_ = p`,
		caught: []string{"node.TestServerThatWasReplacedIsLeft"},
	},
	{
		name: "a connection comes after its master was replaced",
		rule: "with the first word of a new master all connections to the old one are closed",
		file: "node/pinned.go",
		old:  `	if s.addr != addr || s.closed {`, new: `	if s.closed {`,
		caught: []string{"node.TestConnectionThatComesTooLateIsDropped"},
	},
	{
		name: "a promoted server is asked at once",
		rule: "for lingers it is asked for nothing at all",
		file: "node/stream.go",
		old:  `c.relies && s.node.sentinels.rests()`, new: `false`,
		caught: []string{"node.TestServerThatWasPromotedIsLeftAlone"},
	},
	{
		name: "a promoted server without a record waits for the longest TTL",
		rule: "with a quarantine that is longer than the longest TTL by lingers",
		file: "script/settle.lua",
		old:  `(math.max(ttl, tonumber(ARGV[4])) + tonumber(ARGV[8]))`, new: `math.max(ttl, tonumber(ARGV[4]))`,
		caught: []string{"script.TestSettledQuarantineBehindSentinelIsLonger"},
	},
	{
		name: "what sentinels say needs a sentinel in sight",
		rule: "behind Sentinel require min-replicas-to-write of 1 at least",
		file: "script/check.lua",
		old:  `local watched = lingers > 0 or `, new: `local watched = `,
		caught: []string{"script.TestWhoGoesBySentinelsDemandsAReplicaThatKeepsUp"},
	},
}
