// Package quorum takes locks across N independent Redis masters.
//
// A [Coordinator] sends each acquire, renew and release to all nodes at once and counts: a lock is held while a quorum
// of ⌊N/2⌋+1 configured nodes has it, inside a validity window that allows for clocks that run apart. What it could not
// win it takes back. Up to N - quorum nodes may be down, hang, or be restarted empty one after another, without two
// clients holding one lock.
//
// # What is guaranteed
//
//   - Mutual exclusion: as long as clocks run apart by less than the drift factor, all clients have the restart guard on,
//     and not all nodes forget within the longest TTL in use, no two leases of one name are valid at the same time.
//   - Fencing: every lease has a token that is greater than those of all earlier holders of its name. A resource that
//     compares tokens accepts nothing from an older holder once it has seen a newer token, even when the first guarantee
//     is broken by a pause or a clock.
//   - A lease ends for its holder before it ends on any node: [Lease.Done] is closed, its context cancelled, and Err
//     and Remaining read a clock that goes on during a suspend.
//   - A request that was given up cannot take effect later; what an attempt left behind is taken back, even on a node
//     that hangs until then.
//   - A node that hangs costs a healthy majority nothing.
//   - Close joins every goroutine.
//
// # What is not
//
//   - A process can be paused between looking at its lease and acting. Only the resource can catch that, by the token.
//   - A node that is restarted without its data forgets the locks it had. It does not vote until they have expired (the
//     restart guard), and is healed by the next renewal.
//   - Losing all nodes at once loses the locks and the tokens.
//   - Waiters of one process are served in order. Between processes there is no order.
//
// # Where to find what
//
// The rules of the protocol live in files named after them: attempt.go one try at a first hold, ballot.go and vote.go
// how its answers are counted, split.go several tries at once, token.go fencing, claim.go, lane.go and errand.go one
// holder's requests to the nodes and their order, farewell.go rollback and release, hold.go and loss.go a lock that is held and its end,
// renewal.go renewing and healing, release.go what a release waits for, nested.go reentrancy, context.go the lease in a
// context, line.go who waits and what wakes them, wait.go how long they sleep, handoff.go what the goroutines of one process
// hand to each other, crowd.go how many processes share a lock, campaign.go leader election, force.go force-release,
// prefix.go what keeps users of the same nodes apart,
// guard.go, quarantine.go and settle.go nodes that were restarted and may have forgotten. What can be seen of all that: condition.go how each
// node is and what the log is told of it, stats.go the state at a moment, trace.go what a tracer is told. docs/safety.md argues
// why it holds, and names the
// test of each rule.
package quorum
