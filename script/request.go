package script

import "time"

// minFenceTTL is how long a fence outlives the last grant or renewal at least: long enough for a service that takes a
// lock once a day, short enough that names that are never used again leave nothing.
const minFenceTTL = 24 * time.Hour

// A Request is one script with its keys and arguments.
type Request interface {
	// Script is what runs.
	Script() *Script
	// keys writes the keys it touches, and args its arguments, behind the seal.
	keys(w *wire)
	args(w *wire)
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

func (Acquire) Script() *Script { return acquireScript }
func (r Acquire) keys(w *wire) {
	w.lockAndFence(r.Name)
	w.word(RecordKey)
	w.word(revokedPrefix, r.Name, "}")
}
func (r Acquire) args(w *wire) {
	w.word(r.Holder)
	w.number(int64(r.Count))
	w.number(millis(r.TTL))
	w.number(r.Proposal)
	w.number(r.Clamp.Microseconds())
	w.number(fenceTTL(r.TTL))
	w.number(r.More)
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
func (r Renew) keys(w *wire) {
	w.lockAndFence(r.Name)
	w.word(RecordKey)
	w.word(revokedPrefix, r.Name, "}")
}
func (r Renew) args(w *wire) {
	w.word(r.Holder)
	w.number(int64(r.Count))
	w.number(millis(r.TTL))
	w.number(r.Token)
	w.number(fenceTTL(r.TTL))
}

// Raise stores a token in the fence of a lock that is still the holder's: see raise.lua.
type Raise struct {
	Name, Holder string
	Token        int64
	// TTL is the lock's; the fence's follows from it.
	TTL time.Duration
}

func (Raise) Script() *Script { return raiseScript }
func (r Raise) keys(w *wire)  { w.lockAndFence(r.Name) }
func (r Raise) args(w *wire) {
	w.word(r.Holder)
	w.number(r.Token)
	w.number(fenceTTL(r.TTL))
}

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

func (Release) Script() *Script { return releaseScript }
func (r Release) keys(w *wire)  { w.lockAndFence(r.Name) }
func (r Release) args(w *wire) {
	w.word(r.Holder)
	w.word(Channel(r.Name))
	w.word(r.Payload)
	w.number(r.Token)
	w.number(fenceTTL(r.TTL))
}

// Revoke keeps holders from renewing or restoring a lock: see revoke.lua. It is the first step of a force-release.
type Revoke struct {
	Name    string
	Holders []string
	// Lives is how long the revocation lives at least: as long as the holders' leases could.
	Lives time.Duration
}

func (Revoke) Script() *Script { return revokeScript }
func (r Revoke) keys(w *wire) {
	w.word(LockKey(r.Name))
	w.word(RevokedKey(r.Name))
}
func (r Revoke) args(w *wire) {
	w.number(millis(r.Lives))
	for _, h := range r.Holders {
		w.word(h)
	}
}

// ForceRelease deletes a lock that one of some revoked holders has: see force_release.lua. It is the second step of a
// force-release.
type ForceRelease struct {
	Name string
	// Holders are those whose lock is deleted; "" stands for a key of another type.
	Holders []string
}

func (ForceRelease) Script() *Script { return forceReleaseScript }
func (r ForceRelease) keys(w *wire)  { w.word(LockKey(r.Name)) }
func (r ForceRelease) args(w *wire) {
	w.word(Channel(r.Name))
	for _, h := range r.Holders {
		w.word(h)
	}
}

// Inspect reads a lock's state: see inspect.lua.
type Inspect struct{ Name string }

func (Inspect) Script() *Script { return inspectScript }
func (r Inspect) keys(w *wire)  { w.lockAndFence(r.Name) }
func (Inspect) args(*wire)      {}

// Probe runs every command the other scripts need on scratch keys: see probe.lua.
type Probe struct {
	// Name is a scratch name that nobody else uses.
	Name string
}

func (Probe) Script() *Script { return probeScript }
func (r Probe) keys(w *wire) {
	// The script touches the first two. The others are those of other requests, and permission is asked for all that are named.
	w.lockAndFence(r.Name)
	w.word(RecordKey)
	w.word(revokedPrefix, r.Name, "}")
}
func (r Probe) args(w *wire) { w.word(Channel(r.Name)) }

// lockAndFence writes the two keys that most requests touch.
func (w *wire) lockAndFence(name string) {
	w.word(LockKey(name))
	w.word(fencePrefix, name, "}")
}

// millis writes a duration as Redis takes it: whole milliseconds, cut off.
func millis(d time.Duration) int64 { return d.Milliseconds() }

// fenceTTL is how long a fence outlives a lock of the given TTL: max(24 h, 2 x TTL), in milliseconds.
func fenceTTL(ttl time.Duration) int64 {
	return max(minFenceTTL.Milliseconds(), 2*ttl.Milliseconds())
}
