package script_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// without returns a client that may do everything but some commands.
func without(t *testing.T, s *redisserver.Server, denied ...string) *redis.Client {
	t.Helper()
	rules := []string{"~*", "&*", "+@all"}
	for _, command := range denied {
		rules = append(rules, "-"+strings.ToLower(command))
	}
	return as(t, s, rules...)
}

// as returns a client that may do what some ACL rules say.
func as(t *testing.T, s *redisserver.Server, rules ...string) *redis.Client {
	t.Helper()
	user := []any{"ACL", "SETUSER", "limited", "reset", "on", "nopass"}
	for _, rule := range rules {
		user = append(user, rule)
	}
	must(t, s.Client().Do(t.Context(), user...))
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr(), Username: "limited", Password: "any",
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A script that is cut off in the middle keeps what it has done. Whichever permission is missing, what it has done is
// never a lock that stays for ever, nor half a force-release, nor an answer that was not asked for.
func TestMissingPermissionLeavesNoLockWithoutAnEnd(t *testing.T) {
	s := redisserver.Start(t)
	admin := s.Client()
	for command := range commands(t, aProbe.Script()) {
		for _, held := range []string{"", us, them} {
			t.Run(command+" "+held, func(t *testing.T) {
				c := without(t, s, command)
				for _, req := range everyRequest {
					must(t, admin.FlushAll(t.Context()))
					if held != "" {
						lock(t, admin, held, 1, ttl/2)
					}
					got, err := send(t.Context(), c, req, 0)
					for key, left := range ttls(t, admin) {
						if left == script.NoExpiry {
							t.Errorf("%s: %+v, %v: %s stays for ever", req.Script().Name, got, err, key)
						}
					}
					if err == nil && got.Status == script.Held && held != them && req != script.Request(aLook) {
						t.Errorf("%s: %+v, though nobody else holds it", req.Script().Name, got)
					}
					if uses := commands(t, req.Script())[command]; !uses && err != nil {
						t.Errorf("%s does not need %s, and fails: %v", req.Script().Name, command, err)
					}
				}
				if _, err := send(t.Context(), c, aProbe, 0); err == nil {
					t.Error("the probe did not notice")
				}
			})
		}
	}
}

func TestWithoutPublishPermissionALockIsReleasedAllTheSame(t *testing.T) {
	s := redisserver.Start(t)
	c := without(t, s, "PUBLISH")
	for _, req := range []script.Request{aRelease, aRollback, aForce} {
		lock(t, s.Client(), us, 1, ttl)
		wantStatus(t, run(t, c, req), script.Released)
		if must(t, s.Client().Exists(t.Context(), name)) != 0 {
			t.Errorf("%s left the lock there", req.Script().Name)
		}
	}
}

// A node that lacks a permission for one of the steps of a force-release changes nothing, and says so.
func TestForceReleaseWithoutAPermissionChangesNothing(t *testing.T) {
	s := redisserver.Start(t)
	for _, tt := range []struct {
		req     script.Request
		command string
	}{
		{aRevoke, "HGETALL"}, {aRevoke, "SET"}, {aRevoke, "GET"}, {aForce, "HGETALL"}, {aForce, "DEL"},
	} {
		c := without(t, s, tt.command)
		lock(t, s.Client(), us, 1, ttl)
		unchanged(t, s.Client(), func() {
			if got, err := send(t.Context(), c, tt.req, 0); err == nil {
				t.Errorf("%s without %s: %+v, want an error", tt.req.Script().Name, tt.command, got)
			}
		})
	}
}
