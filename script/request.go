package script

import (
	"strconv"
	"time"
)

// minFenceTTL is how long a fence outlives the last grant or renewal at least: long enough for a service that takes a
// lock once a day, short enough that names that are never used again leave nothing.
const minFenceTTL = 24 * time.Hour

// A Request is one script with its keys and arguments.
type Request interface {
	// Script is what runs.
	Script() *Script
	// Keys are the keys it touches.
	Keys() []string
	// Args are its arguments, behind the seal.
	Args() []any
}

// A Seal is what ties a request to a node: it takes effect there and then, or not at all. It is known only when the request
// is sent, and comes first among the arguments.
type Seal struct {
	// Last is the last moment, in microseconds on the node's clock, at which the request may take effect; 0 means none.
	Last int64
	// Incarnation is the one that was checked; empty without a restart guard (see Check). Only what may grant carries it.
	Incarnation string
}

// guarded tells whether a request carries the incarnation.
func guarded(req Request) bool {
	switch req.(type) {
	case Acquire, Renew:
		return true
	}
	return false
}

// Acquire asks for a lock on behalf of a holder: see acquire.lua.
type Acquire struct {
	Name, Holder string
	// Count is the hold count, 1 for a first hold.
	Count int
	// TTL is how long the node keeps the lock; whole milliseconds.
	TTL time.Duration
	// Proposal is the token proposed, in microseconds of the client's wall clock.
	Proposal int64
	// Clamp is how far the proposal may be from the node's clock.
	Clamp time.Duration
	// More is how many tokens below the one that is granted are the holder's as well.
	More int64
}

func (Acquire) Script() *Script  { return acquireScript }
func (r Acquire) Keys() []string { return []string{LockKey(r.Name), FenceKey(r.Name), RecordKey} }
func (r Acquire) Args() []any {
	return []any{
		r.Holder, r.Count, millis(r.TTL), r.Proposal, r.Clamp.Microseconds(), fenceTTL(r.TTL), r.More,
	}
}

// Renew extends or restores a lock: see renew.lua.
type Renew struct {
	Name, Holder string
	Count        int
	TTL          time.Duration
	// Token is the lease's fencing token: the fence is raised to it.
	Token int64
}

func (Renew) Script() *Script { return renewScript }
func (r Renew) Keys() []string {
	return []string{LockKey(r.Name), FenceKey(r.Name), RecordKey, RevokedKey(r.Name)}
}
func (r Renew) Args() []any {
	return []any{r.Holder, r.Count, millis(r.TTL), r.Token, fenceTTL(r.TTL)}
}

// Raise stores a token in the fence of a lock that is still the holder's: see raise.lua.
type Raise struct {
	Name, Holder string
	Token        int64
	// TTL is the lock's; the fence's follows from it.
	TTL time.Duration
}

func (Raise) Script() *Script  { return raiseScript }
func (r Raise) Keys() []string { return []string{LockKey(r.Name), FenceKey(r.Name)} }
func (r Raise) Args() []any    { return []any{r.Holder, r.Token, fenceTTL(r.TTL)} }

// Release gives a lock back, or rolls a failed attempt back: see release.lua.
type Release struct {
	Name, Holder string
	// Payload is Free or RolledBack.
	Payload string
	// Token is the lease's fencing token, 0 for a rollback.
	Token int64
	// TTL is the lock's; the fence's follows from it.
	TTL time.Duration
}

func (Release) Script() *Script  { return releaseScript }
func (r Release) Keys() []string { return []string{LockKey(r.Name), FenceKey(r.Name)} }
func (r Release) Args() []any {
	return []any{r.Holder, Channel(r.Name), r.Payload, r.Token, fenceTTL(r.TTL)}
}

// ForceRelease frees a lock whoever holds it: see force_release.lua.
type ForceRelease struct {
	Name string
	// Holders are revoked besides the one that is found.
	Holders []string
	// Lives is how long the revocation lives at least: as long as the lease could.
	Lives time.Duration
}

func (ForceRelease) Script() *Script  { return forceReleaseScript }
func (r ForceRelease) Keys() []string { return []string{LockKey(r.Name), RevokedKey(r.Name)} }
func (r ForceRelease) Args() []any {
	args := []any{Channel(r.Name), millis(r.Lives)}
	for _, h := range r.Holders {
		args = append(args, h)
	}
	return args
}

// Inspect reads a lock's state: see inspect.lua.
type Inspect struct{ Name string }

func (Inspect) Script() *Script  { return inspectScript }
func (r Inspect) Keys() []string { return []string{LockKey(r.Name), FenceKey(r.Name)} }
func (Inspect) Args() []any      { return nil }

// Probe runs every command the other scripts need on scratch keys: see probe.lua.
type Probe struct {
	// Name is a scratch name that nobody else uses.
	Name string
}

func (Probe) Script() *Script { return probeScript }
func (r Probe) Keys() []string {
	// The script touches the first two. The others are those of other requests, and permission is asked for all that are named.
	return []string{LockKey(r.Name), FenceKey(r.Name), RecordKey, RevokedKey(r.Name)}
}
func (r Probe) Args() []any { return []any{Channel(r.Name)} }

// millis writes a duration as Redis takes it: whole milliseconds, cut off.
func millis(d time.Duration) int64 { return d.Milliseconds() }

// fenceTTL is how long a fence outlives a lock of the given TTL: max(24 h, 2 x TTL), in milliseconds.
func fenceTTL(ttl time.Duration) string {
	return strconv.FormatInt(max(minFenceTTL.Milliseconds(), 2*ttl.Milliseconds()), 10)
}
