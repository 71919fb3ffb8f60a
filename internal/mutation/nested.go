package main

// nestedVariants break what one process knows of its own locks: nested holds, mutexes, those who wait for it.
var nestedVariants = []variant{
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
		old:  `if l == nil || l.holds() != nil {`, new: `if l == nil {`,
		caught: []string{"quorum.TestAcquireUnderAnEndedLeaseIsAFirstHold"},
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
	{
		name: "a renewal forgets the nested holds",
		rule: "it carries the count",
		file: "quorum/renewal.go",
		old:  `h.begin("renew", h.count(), `, new: `h.begin("renew", 1, `,
		caught: []string{"quorum.TestHoldsAddedAtOnceCountEachOther"},
	},
	{
		name: "the local hold ignored",
		rule: "while this process has the lock itself, there is nobody to ask",
		file: "quorum/wait.go",
		old:  `if h == nil || h.isGone() || w.lease != nil {`, new: `if h == nil || true {`,
		caught: []string{"quorum.TestWaitersOfALockOfOurOwnAskNobody"},
	},
	{
		name: "the local hold forgotten after a while",
		rule: "whoever comes shall know that",
		file: "quorum/line.go",
		old:  `	case !ln.all.closed && held: // `, new: `	case false && held: // `,
		caught: []string{"quorum.TestWaitersOfALockOfOurOwnAskNobody"},
	},
	{
		name: "the last word of our own lock is of another one",
		rule: "it was not asked, and need not be",
		file: "quorum/line.go",
		old: `if ln.ours != nil && !ln.ours.isGone() {
		return`, new: `if false {
		return`,
		caught: []string{"quorum.TestEndOfAWaitForALockOfOurOwnHasEveryNodesWord"},
	},
	{
		name: "the local hold believed in",
		rule: "the process may be the last to know that it has lost it",
		file: "quorum/wait.go",
		old:  `s.err == nil && s.holder != h.holder {`, new: `false && s.holder != h.holder {`,
		caught: []string{"quorum.TestLocalHoldThatWasForceReleasedHoldsUpNobody"},
	},
}
