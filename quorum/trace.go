package quorum

import (
	"context"
	"time"
)

// Tracing.
//
// A tracer is told what a coordinator does, call by call, as a database driver's is. It is several small interfaces, so that
// who wants to know one thing writes one method or two: [Config].Tracer takes an [AcquireTracer], and whatever else it
// implements of those below is found out by New, once. What can be asked for at any time is no event but a number: see
// [Coordinator.Stats].
//
// For the methods of all of them:
//
//   - They are called from many goroutines at once: those of the callers, and those that talk to the nodes or keep the
//     leases. No mutex of the library's is held, so they may ask the coordinator or a lease anything.
//   - They must return at once. What tells them waits meanwhile: the call that acquires or releases, whoever reads what a
//     node says, and of a lease that ended by itself the watchdog, which renews all the others. No lease is believed any
//     longer for it (Err and Remaining read the clock), but one may be lost. A tracer that has to wait for something puts what
//     it was told in a queue of its own, and drops what does not fit.
//   - A panic is not recovered. On a goroutine of the library's it ends the process.
//   - Events of different goroutines may be told in another order than that in which they happened.
//
// A call that is refused (an invalid name or option, a closed coordinator) asks nobody anything, and nobody is told of it.

// An AcquireTracer is told of every call that asks for a lock: Acquire, TryAcquire, and what is made of them, as Do and
// Mutex. (How long goroutines wait for each other at one Mutex it is not told: only the one that has its turn there asks.)
type AcquireTracer interface {
	// TraceAcquireStart is called when the call begins. The call goes on with the context that it returns, which must be
	// derived from ctx, and everything else that is told of this call is told with it.
	TraceAcquireStart(ctx context.Context, data TraceAcquireStartData) context.Context
	// TraceAcquireEnd is called when the call is about to return.
	TraceAcquireEnd(ctx context.Context, data TraceAcquireEndData)
}

// TraceAcquireStartData is what a call asks for.
type TraceAcquireStartData struct {
	Op   string // "acquire" or "try-acquire"
	Name string // the lock's
}

// TraceAcquireEndData is what a call returns.
type TraceAcquireEndData struct {
	Op       string // "acquire" or "try-acquire"
	Name     string // the lock's
	Lease    *Lease // nil if there is an Err
	Nested   bool   // a hold was added to a lease that the context carries
	HandedOn bool   // the hold was handed on within the process, without asking the nodes
	Elapsed  time.Duration
	Err      error
}

// A WaitTracer is told of calls that cannot have the lock at once: others of the process come first or hold it, others
// elsewhere hold it, or too few nodes answer.
type WaitTracer interface {
	// TraceWaitStart is called when that turns out. The wait goes on with the context that it returns, which must be derived
	// from ctx.
	TraceWaitStart(ctx context.Context, data TraceWaitStartData) context.Context
	// TraceWaitEnd is called when the call has the lock, or gives up.
	TraceWaitEnd(ctx context.Context, data TraceWaitEndData)
}

// TraceWaitStartData is where a wait begins.
type TraceWaitStartData struct {
	Name  string // the lock's
	Place int    // how many calls of this process come first; those of other processes are in no order
}

// TraceWaitEndData is how a wait ended.
type TraceWaitEndData struct {
	Name     string // the lock's
	HandedOn bool   // the hold was handed on within the process, without asking the nodes
	Elapsed  time.Duration
	Err      error // why it was given up; nil if the lock was had
}

// An AttemptTracer is told of every try to get the votes of a quorum, after it.
type AttemptTracer interface {
	TraceAttempt(ctx context.Context, data TraceAttemptData)
}

// TraceAttemptData is how a try ended.
type TraceAttemptData struct {
	Op      string // "acquire" or "try-acquire"
	Name    string // the lock's
	Split   bool   // several tried at once, and none of them got a quorum: there will be another try
	Elapsed time.Duration
	Err     error // nil if it won the lock; else a *QuorumError with the votes as far as they were in
}

// A HoldTracer is told of every lease that a call returned, nested ones included: when it begins and when it ends. It is told
// of both exactly once, of the end of a lease that the coordinator's Close ended, too.
type HoldTracer interface {
	// TraceHoldStart is called before the call returns that got the lease. What it returns is kept until the lease's end,
	// and not cancelled before.
	TraceHoldStart(ctx context.Context, data TraceHoldStartData) context.Context
	// TraceHoldEnd is called when the lease has ended: its Done is closed, its contexts are cancelled.
	TraceHoldEnd(ctx context.Context, data TraceHoldEndData)
}

// TraceHoldStartData is a lease that begins.
type TraceHoldStartData struct {
	Lease *Lease
}

// TraceHoldEndData is a lease that has ended.
type TraceHoldEndData struct {
	Lease   *Lease
	Elapsed time.Duration // since it began
	Loss    Loss          // why it was lost; 0 if it was released
	Err     error         // ErrReleased or ErrLost
}

// A ReleaseTracer is told of every call of Lease.Release, and of what is made of it.
type ReleaseTracer interface {
	// TraceReleaseStart is called when the call begins, which goes on with the context that it returns.
	TraceReleaseStart(ctx context.Context, data TraceReleaseStartData) context.Context
	// TraceReleaseEnd is called when the call is about to return.
	TraceReleaseEnd(ctx context.Context, data TraceReleaseEndData)
}

// TraceReleaseStartData is a lease that is given back.
type TraceReleaseStartData struct {
	Lease *Lease
}

// TraceReleaseEndData is what Release returns.
type TraceReleaseEndData struct {
	Lease    *Lease
	HandedOn bool // to the next who waited in this process, without telling the nodes
	Elapsed  time.Duration
	Err      error
}

// A RenewalTracer is told of every renewal that was due or asked for, after it. Where several leases are nested it is one
// renewal.
type RenewalTracer interface {
	// TraceRenewal is called with what TraceHoldStart returned for one of the leases, or the background's context.
	TraceRenewal(ctx context.Context, data TraceRenewalData)
}

// TraceRenewalData is how a renewal ended.
type TraceRenewalData struct {
	Name    string // the lock's
	Holder  string
	Asked   bool // by Lease.Renew, and not by the watchdog
	Elapsed time.Duration
	Left    time.Duration // how long the lease may be believed now
	Err     error         // nil if a quorum agreed in time
}

// A LossTracer is told of every lock that was lost, whose leases have ended by then. Where several are nested it is one loss.
type LossTracer interface {
	TraceLoss(data TraceLossData)
}

// TraceLossData is a lock that was lost.
type TraceLossData struct {
	Name   string // the lock's
	Holder string
	Token  int64
	Loss   Loss // why
}

// A VoteTracer is told of every answer of a node, or the lack of one in time, also of those that came too late to decide
// anything. A farewell that is repeated until the node confirms it is told once.
type VoteTracer interface {
	TraceVote(data TraceVoteData)
}

// TraceVoteData is one node's vote.
type TraceVoteData struct {
	// Op is what the node was asked: "acquire", "raise" (a fencing token), "renew", "release", "rollback" (of an attempt
	// that failed), "revoke" and "force-release" (the two steps of
	// a force-release), "inspect" or "ping".
	Op   string
	Vote Vote
}

// A NodeTracer is told when a node's condition changes, as far as requests show it.
type NodeTracer interface {
	TraceNode(data TraceNodeData)
}

// TraceNodeData is how a node is, and how it was.
type TraceNodeData struct {
	Was Condition
	NodeStats
}

// A CoordinatorTracer is told which coordinators there are: it can ask them for their Stats.
type CoordinatorTracer interface {
	// TraceOpen is called before New returns.
	TraceOpen(c *Coordinator)
	// TraceClose is called before Close returns, when all that belongs to the coordinator is over.
	TraceClose(c *Coordinator)
}
