package quorum

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/redquorum/redquorum/script"
)

// A prefix sets apart what several users of the same nodes lock, so that Redis' ACL can confine each of them to its own.
//
// It is put in front of a name in [Coordinator.key] and nowhere else: whatever is sent to a node has the key, and whatever
// a caller, an error or the log gets to see has the name. Where one was taken for the other, a user that is confined would
// not be permitted, which the tests would see.

// key is what the nodes know a lock by: its name, behind the prefix.
func (c *Coordinator) key(name string) string { return c.cfg.Prefix + name }

// validatePrefix refuses what cannot be confined. ACL patterns know no quotes, so every character has to stand for itself in
// one: a '*' in a prefix would take in what is somebody else's.
func validatePrefix(prefix string) error {
	unfit := func(r rune) bool {
		return strings.ContainsRune(`*?[]\`, r) || unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar
	}
	if i := strings.IndexFunc(prefix, unfit); i >= 0 {
		return fmt.Errorf(`redquorum: Prefix %q: want none of *?[]\, no space and nothing unprintable: it has to stand for itself `+
			"in the pattern of an ACL", prefix)
	}
	if script.ReservedPrefix(prefix) {
		return fmt.Errorf("redquorum: Prefix %q: where the nodes keep what locks need, names begin like that: want another one", prefix)
	}
	return nil
}

// ACL returns the rules of Redis' ACL that a user needs at least, on every node, for all that a coordinator with this
// Config.Prefix does: one word each, as ACL SETUSER and an ACL file take them. It is for Redis 6.2 and later.
// [Coordinator.Ping] tries all of them but the one for names with braces. A prefix that Config refuses is an error.
//
// To be added: the user's name and password, and what a node's address asks for besides, such as +select for a database
// other than 0 and +client|setname for a client's name. Without +config|get, which shows all settings, a node that was
// restarted does not vote for a while, even if it lost nothing.
//
// They keep users out of each other's locks; they do not stop an enemy. Everybody may write the record of a node, on which
// the restart guard relies, and may keep a server busy with scripts.
func ACL(prefix string) ([]string, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	return script.ACL(prefix), nil
}
