package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// Passwords: the one that is right, and one that somebody mistyped and that is a secret all the same.
const (
	secret = "s3cret-Of-All"
	wrong  = "Wr0ng-But-Secret"
)

// guarded starts servers that have a user "app", who wants a password and may do everything but what further ACL rules
// forbid.
func guarded(t *testing.T, rules ...string) *machines {
	t.Helper()
	return startMachines(t, 3, append([]string{"--user", "app", "on", ">" + secret, "~*", "&*", "+@all"}, rules...)...)
}

// as returns a client that logs in with these credentials.
func (m *machines) as(credentials string) *quorum.Coordinator {
	m.T.Helper()
	var urls []string
	for _, s := range m.Servers {
		urls = append(urls, "redis://"+credentials+s.Addr())
	}
	return m.ClientAt(quorum.Config{}, urls)
}

// wantRefused checks that an error came at once, says why, and keeps the secrets.
func (m *machines) wantRefused(what string, call func(context.Context) error, reason string) {
	m.T.Helper()
	ctx, cancel := context.WithTimeout(m.T.Context(), patience)
	defer cancel()
	err := call(ctx)
	switch {
	case err == nil:
		m.T.Errorf("%s: no error, want %s", what, reason)
	case errors.Is(err, context.DeadlineExceeded):
		m.T.Errorf("%s waited, for %v, until its context ended", what, patience)
	case !strings.Contains(strings.ToUpper(err.Error()), strings.ToUpper(reason)):
		m.T.Errorf("%s: %v, want %s", what, err, reason)
	}
	if told := fmt.Sprint(err, m.Log); strings.Contains(told, secret) || strings.Contains(told, wrong) {
		m.T.Errorf("%s: a password is told: %s", what, told)
	}
}

func TestRealCredentialsThatAreRefusedFailAtOnce(t *testing.T) {
	m := guarded(t, "--requirepass", secret)
	for _, c := range []struct{ credentials, reason string }{
		{"", "NOAUTH"},
		{":" + wrong + "@", "WRONGPASS"},
		{"app:" + wrong + "@", "WRONGPASS"},
		{"nobody:" + secret + "@", "WRONGPASS"},
	} {
		client := m.as(c.credentials)
		m.wantRefused("Acquire", anAcquire(client), c.reason)
		m.wantRefused("Ping", client.Ping, c.reason)
	}
	for _, right := range []string{":" + secret + "@", "app:" + secret + "@"} {
		client := m.as(right)
		m.Must(client.Ping(t.Context()))
		mustRelease(t, mustGet(t, client, "stock"))
	}
}

// anAcquire is an Acquire that waits, to be called.
func anAcquire(c *quorum.Coordinator) func(context.Context) error {
	return func(ctx context.Context) error { _, err := c.Acquire(ctx, "stock"); return err }
}

// Ping runs whatever the locks need, so it finds out which permission is missing. An acquire then fails at once too, and
// leaves nothing: a lock that could not be given an end, say, would stay for ever.
func TestRealPingTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for _, missing := range []string{"publish", "set", "hset", "pexpire", "evalsha", "time"} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			m := guarded(t, "-"+missing)
			client := m.as("app:" + secret + "@")
			m.wantRefused("Ping", client.Ping, missing)
			if missing == "publish" { // a hint to waiters, who poll besides
				mustRelease(t, mustGet(t, client, "stock"))
			} else {
				m.wantRefused("Acquire", anAcquire(client), missing)
			}
			m.Clean(time.Second)
		})
	}
}
