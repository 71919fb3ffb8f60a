package main

// groundVariants break what quorum stands on: one node, the watchdog, the arithmetic of validity.
var groundVariants = []variant{
	{
		name: "requests that never expire",
		rule: "until is the last moment at which it may take effect",
		file: "node/stream.go",
		old:  `c.last, _ = s.node.offset.nodeTime(c.Until)`, new: `c.last = 0`,
		caught: []string{"node.TestWhateverArrivesLateDoesNothing"},
	},
	{
		name: "the upper end of the offset",
		rule: "with the lower end of the offset a request's last moment comes no later on the node than it does here",
		file: "node/offset.go",
		old:  `return t.Micros() + o.lo, o.known`, new: `return t.Micros() + o.hi, o.known`,
		caught: []string{"node.TestOffsetHoldsTheTruth"},
	},
	{
		name: "an offset that never gets less certain",
		rule: "what was known has become less certain since",
		file: "node/offset.go",
		old:  `wider := drift(since)`, new: `wider := 0 * drift(since)`,
		caught: []string{"node.TestOffsetHoldsTheTruth"},
	},
	{
		name: "a clock that was set is not noticed",
		rule: "one of the clocks was set, and the newest reading is the only one that counts",
		file: "node/offset.go",
		old:  `		case since < 0:`, new: `		default:`,
		caught: []string{"node.TestOffsetIsAnInterval"},
	},
	{
		name: "an overtaken reading counts as new",
		rule: "replies overtake each other, so what was known may as well be the later reading",
		file: "node/offset.go",
		old:  `		case since < 0:`, new: `		case false:`,
		caught: []string{"node.TestOffsetFromOvertakenReplies"},
	},
	{
		name: "the node's clock learnt only at connect",
		rule: "refined by the TIME that every reply carries",
		file: "node/call.go",
		old:  `	n.offset.learn(reply.Now, c.sent, o.at)` + "\n", new: "",
		caught: []string{"node.TestNodesClockSetBack", "node.TestNodesClockSetForward"},
	},
	{
		name: "refused for a clock that was set forward",
		rule: "a request that the node found too late although there was time left is repeated once",
		file: "node/call.go",
		old:  ` || reply.Status == script.Expired` + "\n", new: "\n",
		caught: []string{"node.TestNodesClockSetForward"},
	},
	{
		name: "repeated although it is late here, too",
		rule: "once the time is up, an expired request is not repeated",
		file: "node/call.go",
		old:  ` && (c.Until.IsZero() || o.at.Before(c.Until)) {`, new: ` {`,
		caught: []string{"node.TestRequestThatIsLateHereIsNotRepeated"},
	},
	{
		name: "no fallback on NOSCRIPT",
		rule: "a script the node does not know is sent with its source in the same call",
		file: "node/call.go",
		old:  `!c.bySource && c.words == nil`, new: `c.bySource && c.words == nil`,
		caught: []string{"quorum.TestAcquireTakesTheLockOnEveryNode"},
	},
	{
		name: "a sent request counts as not sent",
		rule: "only then can it have taken effect",
		file: "node/call.go",
		old:  `return way{sent: c.stage == flying`, new: `return way{sent: false`,
		caught: []string{"node.TestRunEndsAtItsDeadlineExactly"},
	},
	{
		name: "a timeout of the node is the caller's",
		rule: "it never matches a context's error: the caller's time is not up, the node's is",
		file: "node/errors.go",
		old:  `		e.Err = ErrTimeout`, new: `		e.Err = err`,
		caught: []string{"quorum.TestNoQuorumWhenTooManyNodesFail"},
	},
	{
		name: "retried behind our back",
		rule: "a request that is sent again behind our back may take effect after it was given up",
		file: "node/options.go",
		old:  `o.MaxRetries = -1`, new: `o.MaxRetries = 3`,
		caught: []string{"node.TestNothingIsSentTwice"},
	},
	{
		name: "the context's deadline ignored",
		rule: "the context's deadline is the only timeout",
		file: "node/options.go",
		old:  `o.ContextTimeoutEnabled = true`, new: `o.ContextTimeoutEnabled = false`,
		caught: []string{"node.TestRunEndsAtItsDeadlineExactly"},
	},
	{
		name: "given-up connections closed the usual way",
		rule: "makes Close drop what the kernel has not delivered yet",
		file: "node/conn.go",
		old: `	forget(conn)
		if config`,
		new:    `	if config`,
		caught: []string{"node.TestGivenUpConnectionIsReset"},
	},
	{
		name: "the caller's connections closed the usual way",
		rule: "makes Close drop what the kernel has not delivered yet",
		file: "node/options.go",
		old:  `				forget(conn)`, new: `				_ = conn`,
		caught: []string{"node.TestGivenUpConnectionIsReset"},
	},
	{
		name: "a lease that is over is renewed",
		rule: "the end goes first: a lease that is over is not renewed",
		file: "renew/watchdog.go",
		old:  `if now.Before(w.end) {`, new: `if now.Before(w.end) || !w.renewAt.IsZero() {`,
		caught: []string{"renew.TestEndGoesFirstAfterASuspend"},
	},
	{
		name: "renewed again before the first has come back",
		rule: "there is no other call before the next Set",
		file: "renew/watchdog.go",
		old:  `			w.renewAt = clock.Instant{}` + "\n", new: `			w.renewAt = now.Add(1)` + "\n",
		caught: []string{"renew.TestNoSecondRenewalBeforeTheNextSet"},
	},
	{
		name: "a watch that was stopped goes on",
		rule: "Stop ends the watch",
		file: "renew/watchdog.go",
		old: `		heap.Remove(&d.queue, w.index)
	}
}`,
		new: `		_ = w.index
	}
}`,
		caught: []string{"renew.TestStoppedWatchIsSilent"},
	},
	{
		name: "a new head does not wake the watchdog",
		rule: "the head of the queue is another one",
		file: "renew/watchdog.go",
		old:  `if w.index == 0 && (d.armed.IsZero() || w.next().Before(d.armed)) {`, new: `if w.index < 0 {`,
		caught: []string{"renew.TestSetMovesBothWays"},
	},
	{
		name: "repetitions of a long lease come together",
		rule: "others that are due leave the pause before a repetition what it is",
		file: "renew/watchdog.go",
		old:  `mostTogether = 100 * time.Millisecond`, new: `mostTogether = time.Hour`,
		caught: []string{"renew.TestRepetitionsOfALongLeaseKeepTheirPauses"},
	},
	{
		name: "renewed at the last moment",
		rule: "renewed every third of it, so that two renewals may fail",
		file: "renew/cadence.go",
		old:  `start.Add(c.TTL / 3)`, new: `start.Add(c.TTL - c.TTL/50)`,
		caught: []string{"renew.TestRenewalsComeEveryThird", "quorum.TestOutageShorterThanTheTTLCostsNoLease"},
	},
	{
		name: "drift without the precision of Redis' expiry",
		rule: "what every drift contains, however short the TTL",
		file: "clock/validity.go",
		old:  `sum(portion(ttl, factor), expirePrecision)`, new: `sum(portion(ttl, factor), 0*expirePrecision)`,
		caught: []string{"clock.TestDrift"},
	},
	{
		name: "drift without the clock's uncertainty",
		rule: "the uncertainty of the clock the lease is measured with",
		file: "clock/validity.go",
		old:  `expirePrecision), max(0, uncertainty))`, new: `expirePrecision), min(0, uncertainty))`,
		caught: []string{"clock.TestDrift"},
	},
	{
		name: "drift rounded down",
		rule: "rounded up to a nanosecond",
		file: "clock/validity.go",
		old:  `		whole++`, new: `		_ = whole`,
		caught: []string{"clock.TestDrift"},
	},
	{
		name: "validity without drift",
		rule: "start + ttl - drift",
		file: "clock/validity.go",
		old:  `difference(ttl, max(0, drift))`, new: `difference(ttl, 0*drift)`,
		caught: []string{"clock.TestValidity", "quorum.TestLossIsAnnouncedBeforeAnyNodeExpires"},
	},
	{
		name: "missing credentials are waited for",
		rule: "it answers, and refuses the client's credentials",
		file: "node/refusal.go",
		old:  `if strings.HasPrefix(text, class) {`, new: `if strings.HasPrefix(text, class+"?") {`,
		caught: []string{"node.TestAnswersThatAreErrors"},
	},
	{
		name: "Close lets dials go on",
		rule: "ends a dial that is under way when the connection is closed",
		file: "node/conn.go",
		old: `	c.cancel()
	c.mu.Lock()
`, new: `	c.mu.Lock()
`,
		caught: []string{"node.TestCloseEndsADialThatIsUnderWay"},
	},
}
