package script

// ACL returns the smallest set of rules, in the words of Redis' ACL SETUSER, with which a user can do all that locks need
// whose names begin with a prefix: for what the scripts do, and what package node does besides them. The prefix must be one
// that stands for itself in a pattern, and not a [ReservedPrefix]. "" is every name.
//
// All three kinds of keys are read and written: EVALSHA asks for both on each key that it names, so %R~ and %W~ would
// not do. Every user needs the record, which is not any lock's but the node's.
func ACL(prefix string) []string {
	rules := []string{"~" + LockKey(prefix) + "*"}
	if prefix != "" {
		rules = append(rules, "~"+fencePrefix+prefix+"*", "~"+revokedPrefix+prefix+"*", "~"+RecordKey)
	}
	return append(append(rules, channelRules(prefix)...), commandRules...)
}

// channelRules are those for the channels: see Channel, which knows names with braces and names without.
func channelRules(prefix string) []string {
	bare := "&" + channelPrefix + prefix + "*"
	if prefix == "" || Channel(prefix) == channelPrefix+prefix {
		return []string{bare}
	}
	return []string{"&" + channelPrefix + "{" + prefix + "*", bare}
}

// commandRules are those for the commands. HELLO and AUTH are everybody's.
var commandRules = []string{
	"+evalsha", "+eval", // a server that was restarted does not know the scripts
	"+time", "+hmget", "+hlen", "+hrandfield", "+hgetall", "+hget", "+hexists", "+hset", "+get", "+set", "+exists", "+pttl", "+pexpire", "+del",
	"+publish", "+subscribe", "+unsubscribe", "+ping", // messages, and whether they still arrive
	"+pubsub|numsub", // who waits elsewhere; and whether a Sentinel watches the node
	"+info",          // whether the node was restarted
}
