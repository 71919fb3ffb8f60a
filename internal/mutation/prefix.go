package main

// prefixVariants break how a name becomes what the nodes know it by, and what is said about a missing permission.
var prefixVariants = []variant{
	{
		name: "names go without their prefix",
		rule: "whatever is sent to a node has the key",
		file: "quorum/prefix.go",
		old:  `return c.cfg.Prefix + name`, new: `return name`,
		caught: []string{"quorum.TestOtherPrefixesAreOtherLocks", "quorum.TestEverythingOfALockHasThePrefix"},
	},
	{
		name: "waiters listen without the prefix",
		rule: "whatever is sent to a node has the key",
		file: "quorum/wake.go",
		old:  `channel := script.Channel(ln.key)`, new: `channel := script.Channel(ln.name)`,
		caught: []string{"quorum.TestEverythingOfALockHasThePrefix"},
	},
	{
		name: "a prefix may be a pattern",
		rule: "every character has to stand for itself",
		file: "quorum/prefix.go",
		old:  "strings.ContainsRune(`*?[]\\`, r) || ", new: ``,
		caught: []string{"quorum.TestInvalidConfigurationIsRefused"},
	},
	{
		name: "a prefix may take in the nodes' own keys",
		rule: "some of them, or a pattern that has the prefix in front, would take in the record of a node",
		file: "script/keys.go",
		old:  `(strings.HasPrefix(reserved, prefix) || strings.HasPrefix(prefix, reserved))`, new: `strings.HasPrefix(prefix, reserved)`,
		caught: []string{"script.TestReservedPrefixes", "quorum.TestInvalidConfigurationIsRefused"},
	},
	{
		name: "ping tries scripts only",
		rule: "permitted asks the nodes that have answered for what no script can try",
		file: "quorum/ping.go",
		old:  `	c.permitted(ctx, name, b)`, new: ``,
		caught: []string{"quorum.TestPingTriesToListen"},
	},
}
