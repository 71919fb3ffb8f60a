package script_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// besides are the commands that package node runs outside of scripts, and that it runs scripts with.
var besides = []string{"+evalsha", "+eval", "+subscribe", "+unsubscribe", "+ping"}

// No script has a command that the rules lack, and the rules have none that no script has.
func TestACLHasEveryCommandAndNoOther(t *testing.T) {
	needed := slices.Clone(besides)
	for _, s := range script.All() {
		for command := range commands(t, s) {
			rule := "+" + strings.ToLower(command)
			if rule == "+pubsub" {
				rule = "+pubsub|numsub"
			}
			needed = append(needed, rule)
		}
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	given := slices.DeleteFunc(script.ACL("shop:"), func(rule string) bool { return rule[0] != '+' })
	slices.Sort(given)
	if !slices.Equal(given, needed) {
		t.Errorf("the rules have %q, the scripts need %q", given, needed)
	}
}

func TestACLConfinesKeysAndChannels(t *testing.T) {
	for prefix, want := range map[string][]string{
		"": {"~*", "&redisson_lock__channel:*"},
		"shop:": {
			"~shop:*", "~redquorum_fence:{shop:*", "~redquorum_revoked:{shop:*", "~redquorum_node",
			"&redisson_lock__channel:{shop:*", "&redisson_lock__channel:shop:*",
		},
		"{shop}:": {
			"~{shop}:*", "~redquorum_fence:{{shop}:*", "~redquorum_revoked:{{shop}:*", "~redquorum_node",
			"&redisson_lock__channel:{shop}:*",
		},
	} {
		got := slices.DeleteFunc(script.ACL(prefix), func(rule string) bool { return rule[0] == '+' })
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
}

// With exactly the rules of a prefix every request can be made that has it, and none that has another.
func TestACLSufficesForEveryRequest(t *testing.T) {
	s := redisserver.Start(t)
	for _, prefix := range []string{"", "order:", "order", "{order}:"} {
		c := as(t, s, script.ACL(prefix)...)
		for _, own := range []string{prefix + name, prefix + "{" + name + "}"} {
			for _, req := range append(requests(own), aboutNodes...) {
				keys, args := sealed(req, script.Seal{})
				if _, err := c.Eval(t.Context(), req.Script().Source, keys, args...).Result(); err != nil {
					t.Errorf("%q: %s of %q: %v", prefix, req.Script().Name, own, err)
				}
			}
		}
		if prefix == "" {
			continue
		}
		others := maps.Clone(dumped(t, s))
		for _, req := range requests("x" + name) {
			if got, err := send(t.Context(), c, req, 0); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
				t.Errorf("%q: %s of somebody else's lock: %+v, %v", prefix, req.Script().Name, got, err)
			}
		}
		if after := dumped(t, s); !maps.Equal(others, after) {
			t.Errorf("%q: changed %v to %v", prefix, others, after)
		}
	}
}

func dumped(t *testing.T, s *redisserver.Server) map[string]string { return dump(t, s.Client()) }

// requests is one of each that is about a lock.
func requests(name string) []script.Request {
	return []script.Request{
		script.Acquire{Name: name, Holder: us, Count: 1, TTL: ttl, Proposal: noon, Clamp: clamp},
		script.Renew{Name: name, Holder: us, Count: 1, TTL: ttl, Token: noon},
		script.Raise{Name: name, Holder: us, Token: noon, TTL: ttl},
		script.Inspect{Name: name},
		script.Release{Name: name, Holder: us, Payload: script.Free, Token: noon, TTL: ttl},
		script.Revoke{Name: name, Holders: []string{us}, Lives: ttl},
		script.ForceRelease{Name: name, Holders: []string{us}},
		script.Probe{Name: name},
	}
}

func TestReservedPrefixes(t *testing.T) {
	for prefix, want := range map[string]bool{
		"": false, "shop:": false, "redquorum_locks:": false, "{shop}:": false, "redisson": false,
		"r": true, "red": true, "redquorum_": true, "redquorum_node": true, "redquorum_node:": true, "redquorum_fence": true,
		"redquorum_fence:{": true, "redquorum_fence:{a": true, "redquorum_revoked:{a}": true,
	} {
		if got := script.ReservedPrefix(prefix); got != want {
			t.Errorf("%q: %v, want %v", prefix, got, want)
		}
		if !want && prefix != "" {
			for _, name := range []string{script.RecordKey, script.FenceKey("a"), script.RevokedKey("a"), "a"} {
				if script.Reserved(prefix + name) {
					t.Errorf("%q: %q is reserved, and the prefix is not", prefix, prefix+name)
				}
			}
		}
	}
}
