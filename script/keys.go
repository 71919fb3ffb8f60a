package script

import "strings"

// Payloads of release messages.
const (
	// Free is published when the lock became free. It is Redisson's unlock message.
	Free = "0"
	// RolledBack is published when only a failed attempt was taken back. It is Redisson's read-unlock message: it
	// wakes Redisson's waiters, and ours do not count it, or the losers of a split vote would wake each other for ever.
	RolledBack = "1"
)

// LockKey returns the key of the lock called name: the name itself, as in Redisson.
func LockKey(name string) string { return name }

const channelPrefix, fencePrefix, revokedPrefix = "redisson_lock__channel:", "redquorum_fence:{", "redquorum_revoked:{"

// Channel returns the channel on which the lock's release is announced. Like Redisson, it adds no braces to a name
// that has some.
func Channel(name string) string {
	if strings.Contains(name, "{") {
		return channelPrefix + name
	}
	return channelPrefix + "{" + name + "}"
}

// FenceKey returns the key of the lock's highest fencing token.
func FenceKey(name string) string { return fencePrefix + name + "}" }

// RevokedKey returns the key of the holders that were force-released.
func RevokedKey(name string) string { return revokedPrefix + name + "}" }

// Reserved tells whether a name is no name for a lock, since its key may be the record of a node, or belong to another lock.
func Reserved(name string) bool {
	return name == RecordKey || strings.HasPrefix(name, fencePrefix) || strings.HasPrefix(name, revokedPrefix)
}

// ReservedPrefix tells whether a prefix is none for the names of locks: some of them, or a pattern that has the prefix in
// front, would take in the record of a node, or what belongs to other locks.
func ReservedPrefix(prefix string) bool {
	for _, reserved := range []string{RecordKey, fencePrefix, revokedPrefix} {
		if prefix != "" && (strings.HasPrefix(reserved, prefix) || strings.HasPrefix(prefix, reserved)) {
			return true
		}
	}
	return false
}

// IsHolder tells whether a text has the shape of a holder: the id of a client, which is a UUID, a colon, and a number, which
// is Redisson's of a thread.
func IsHolder(text string) bool {
	const id = len("00000000-0000-0000-0000-000000000000")
	if len(text) < id+2 || len(text) > id+1+20 || text[id] != ':' {
		return false
	}
	for i, r := range []byte(text) {
		digit := '0' <= r && r <= '9'
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if r != '-' {
				return false
			}
		case i < id:
			if !digit && (r < 'a' || 'f' < r) && (r < 'A' || 'F' < r) {
				return false
			}
		case i > id && !digit:
			return false
		}
	}
	return true
}
