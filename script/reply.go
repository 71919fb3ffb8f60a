package script

import (
	"fmt"
	"time"
)

// A Status is what a script did.
type Status string

// The statuses, as the scripts write them. Each script's header says which it answers with.
const (
	Granted   Status = "granted"   // acquire: the lock was free and is the holder's now
	Already   Status = "already"   // acquire: it was the holder's before
	Renewed   Status = "renewed"   // renew: it was the holder's
	Restored  Status = "restored"  // renew: it was absent and is the holder's now
	Raised    Status = "raised"    // raise: the fence is at least the token
	Released  Status = "released"  // release, force-release: there was a lock, now deleted
	Stored    Status = "stored"    // revoke: the revocation is stored
	Probed    Status = "probed"    // probe: every command worked
	Absent    Status = "absent"    // there is no lock
	Held      Status = "held"      // somebody else's
	Revoked   Status = "revoked"   // acquire, renew: the holder was force-released
	Expired   Status = "expired"   // the request came after its last moment and did nothing
	Exhausted Status = "exhausted" // acquire: the fence cannot grow any more

	// Of the restart guard: see Check.
	Stranger    Status = "stranger"    // the node is not the one that was checked, or has forgotten since
	Unsettled   Status = "unsettled"   // the node has no record, and nobody has decided yet what that means
	Quarantined Status = "quarantined" // acquire: free, as far as the node remembers, which is not far enough
	Settled     Status = "settled"     // settle: it is decided
)

// KnownStatus reads a status as it is written, without a copy of its own if it is one of those above.
func KnownStatus(text []byte) string {
	if s, ok := known[string(text)]; ok {
		return s
	}
	return string(text)
}

var known = func() map[string]string {
	all := map[string]string{}
	for _, s := range []Status{
		Granted, Already, Renewed, Restored, Raised, Released, Stored, Probed, Absent, Held, Revoked, Expired, Exhausted,
		Stranger, Unsettled, Quarantined, Settled,
	} {
		all[string(s)] = string(s)
	}
	return all
}()

// NoExpiry is the TTL of a key that never expires.
const NoExpiry time.Duration = -1

// A Reply is what every script answers with.
type Reply struct {
	Status Status
	// Fence is the highest fencing token granted on the node, where the script looked at it.
	Fence int64
	// TTL is the time the lock has left; for a renewal, the time it had left before. NoExpiry if it has no end, 0 if
	// there is no lock.
	TTL time.Duration
	// Holder has the lock; empty if nobody does, or if the key is of another type.
	Holder string
	// Count is the holder's hold count; for a release, how many subscribers the lock's channel has on this node.
	Count int
	// Now is the node's clock in microseconds since 1970.
	Now int64
	// Quarantine is how long the node has yet to wait before its votes count for everybody; 0 for most.
	Quarantine time.Duration
}

// ParseReply reads what a script answered with. An answer of another shape is an error: something else than Redis, or
// another version of the script, is at the other end.
func ParseReply(v any) (Reply, error) {
	fields, ok := v.([]any)
	if !ok || len(fields) < 6 || len(fields) > 7 {
		return Reply{}, fmt.Errorf("script: want a reply of 6 or 7 values, got %T of %d", v, len(fields))
	}
	var values Values
	var ok1, ok2, ok3, ok4, ok5, ok6, ok7 bool
	values.Status, ok1 = fields[0].(string)
	values.Fence, ok2 = fields[1].(int64)
	values.PTTL, ok3 = fields[2].(int64)
	values.Holder, ok4 = fields[3].(string)
	values.Count, ok5 = fields[4].(int64)
	values.Now, ok6 = fields[5].(int64)
	ok7 = true
	if len(fields) == 7 {
		values.Quarantine, ok7 = fields[6].(int64)
	}
	if !ok7 || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 {
		return Reply{}, fmt.Errorf("script: want {string, int, int, string, int, int, [int]}, got %v", fields)
	}
	return values.Reply(), nil
}

// Values are what a reply is made of, in the order in which the scripts write them. The last one may be missing.
type Values struct {
	Status      string
	Fence, PTTL int64
	Holder      string
	Count, Now  int64
	Quarantine  int64
}

// Reply reads the values.
func (v Values) Reply() Reply {
	return Reply{
		Status: Status(v.Status),
		Fence:  v.Fence,
		TTL:    ttl(v.PTTL),
		Holder: v.Holder,
		Count:  int(v.Count),
		Now:    v.Now,

		Quarantine: ttl(v.Quarantine),
	}
}

// ttl reads a PTTL: -2 no key, -1 no expiry.
func ttl(pttl int64) time.Duration {
	switch {
	case pttl == -1:
		return NoExpiry
	case pttl < 0:
		return 0
	case pttl > int64(maxTTL/time.Millisecond):
		return maxTTL
	}
	return time.Duration(pttl) * time.Millisecond
}

const maxTTL time.Duration = 1<<63 - 1
