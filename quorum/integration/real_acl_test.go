package integration_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// With the rules of quorum.ACL, and no others, everything works; without any one of them it is said which is missing.

// permit lets user "app" do what some rules say, and no more, on all servers.
func (m *machines) permit(rules []string) {
	m.T.Helper()
	words := []any{"ACL", "SETUSER", "app", "reset", "on", ">" + secret}
	for _, rule := range rules {
		words = append(words, rule)
	}
	for _, s := range m.Servers {
		m.Must(s.Client().Do(m.T.Context(), words...).Err())
	}
}

// confined are servers with a user "app", who may do what the rules for a prefix say, also after a restart.
func confined(t *testing.T, prefix string) *machines {
	t.Helper()
	return startMachines(t, 3, append([]string{"--user", "app", "on", ">" + secret}, rulesFor(t, prefix)...)...)
}

func rulesFor(t *testing.T, prefix string) []string {
	t.Helper()
	rules, err := quorum.ACL(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// app returns a client that logs in as that user.
func (m *machines) app(prefix string) *quorum.Coordinator {
	m.T.Helper()
	var urls []string
	for _, s := range m.Servers {
		urls = append(urls, "redis://app:"+secret+"@"+s.Addr())
	}
	return m.ClientAt(quorum.Config{Prefix: prefix}, urls)
}

func TestRealACLSufficesForEverything(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for prefix, names := range map[string][]string{
		"":        {"stock", "{shop}:stock"},
		"shop:":   {"stock", "{eu}:stock"},
		"{shop}:": {"stock", "{eu}:stock"},
	} {
		for _, name := range names {
			t.Run(prefix+" "+name, func(t *testing.T) {
				t.Parallel()
				m := confined(t, prefix)
				m.eachStep(prefix, name)
				if logged := m.Log.String(); strings.Contains(logged, "NOPERM") || strings.Contains(logged, "can't") || strings.Contains(logged, "refuses") {
					t.Errorf("logged: %s", logged)
				}
			})
		}
	}
}

// eachStep does all that can be done with a lock.
func (m *machines) eachStep(prefix, name string) {
	t, key := m.T, prefix+name
	t.Helper()
	c, other := m.app(prefix), m.app(prefix)
	m.reaches(c)

	// The nodes do not agree on a token, and those that store less are raised.
	for i, s := range m.Servers[:2] {
		ahead := time.Now().Add(time.Duration(1+i) * time.Hour).UnixMicro()
		m.Must(s.Client().Set(t.Context(), script.FenceKey(key), ahead, time.Hour).Err())
	}
	l := mustGet(t, c, name)
	m.eventually("the token is on a quorum", func() bool {
		n := 0
		for i := range m.Servers {
			if m.fence(i, key) >= l.Token() {
				n++
			}
		}
		return n >= 2
	})
	mustRelease(t, mustAcquire(t, c, l.Context(t.Context()), name)) // a nested hold
	m.Must(l.Renew(t.Context()))
	m.renewed(key)

	// A node that was restarted empty gets the lock back, and does not vote for others.
	m.Restart(0)
	m.eventually("the lease is healed", m.counts(key, l.Holder(), "1"))
	if !m.inQuarantine(0) {
		t.Error("a node that was restarted empty is in no quarantine")
	}
	if s, err := other.Inspect(t.Context(), name); err != nil || s.Holder != l.Holder() || s.Token < l.Token() {
		t.Errorf("inspect: %+v, %v", s, err)
	}

	// A wait, and the message that ends it.
	ear := m.Servers[1].Client().Subscribe(t.Context(), script.Channel(key))
	defer ear.Close()
	got := make(chan *quorum.Lease, 1)
	go func() {
		l, err := other.Acquire(t.Context(), name)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	m.eventually("the waiter listens", func() bool {
		return m.listeners(0, script.Channel(key)) == 1 && m.listeners(1, script.Channel(key)) == 2 && m.listeners(2, script.Channel(key)) == 1
	})
	mustRelease(t, l)
	if msg, err := ear.ReceiveMessage(t.Context()); err != nil || msg.Payload != script.Free {
		t.Errorf("heard %v, %v", msg, err)
	}
	l = <-got
	if freed, err := c.ForceRelease(t.Context(), name); err != nil || !freed {
		t.Errorf("force-release: %v, %v", freed, err)
	}
	wantIs(t, l.Renew(t.Context()), quorum.ErrLost)
	m.Clean(time.Second)
}

// Whoever is confined to a prefix has nothing to look for behind another.
func TestRealACLKeepsOthersOut(t *testing.T) {
	m := confined(t, "shop:")
	l := mustGet(t, m.Client(quorum.Config{Prefix: "bank:"}), "safe")
	thief := m.app("bank:")
	m.wantRefused("Ping", thief.Ping, "bank:redquorum_ping")
	m.wantRefused("Acquire", func(ctx context.Context) error { _, err := thief.Acquire(ctx, "safe"); return err }, `"bank:safe"`)
	m.wantRefused("Inspect", func(ctx context.Context) error { _, err := thief.Inspect(ctx, "safe"); return err }, `"bank:safe"`)
	m.wantRefused("ForceRelease", func(ctx context.Context) error { _, err := thief.ForceRelease(ctx, "safe"); return err }, `"bank:safe"`)
	m.Must(l.Renew(t.Context()))
	for i := range m.Servers {
		if m.Hash(i, "bank:safe")[l.Holder()] != "1" {
			t.Errorf("server %d lost the lock", i)
		}
	}
	mustRelease(t, l)
}

// Ping names whichever rule is missing: the command, or a key or channel that only this rule permits. The log does where a
// name has braces, which Ping's has not.
func TestRealEveryRuleThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	const prefix = "shop:"
	m := confined(t, prefix)
	rules := rulesFor(t, prefix)
	m.reaches(m.app(prefix))
	named := map[string]string{
		"~shop:*":                         `"shop:redquorum_ping:`,
		"~redquorum_fence:{shop:*":        `"redquorum_fence:{shop:redquorum_ping:`,
		"~redquorum_revoked:{shop:*":      `"redquorum_revoked:{shop:redquorum_ping:`,
		"~redquorum_node":                 `["redquorum_node"]`,
		"&redisson_lock__channel:{shop:*": `redisson_lock__channel:{shop:redquorum_ping:`,
	}
	for _, missing := range rules {
		if missing == "&redisson_lock__channel:shop:*" {
			continue // the next test's
		}
		t.Run(missing, func(t *testing.T) {
			m := on(t, m.Log, m.Servers...)
			m.permit(slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == missing }))
			for _, s := range m.Servers {
				m.Must(s.Client().ScriptFlush(t.Context()).Err()) // as after a restart
			}
			client := m.app(prefix)
			want := named[missing]
			if command, ok := strings.CutPrefix(missing, "+"); ok {
				want = command
			}
			m.wantRefused("Ping", client.Ping, want)
			err := client.Ping(t.Context())
			if command, ok := strings.CutPrefix(missing, "+"); ok && !regexp.MustCompile(`(?i)('`+regexp.QuoteMeta(command)+`'|: `+command+`\b)`).MatchString(err.Error()) {
				t.Errorf("%v: does not name the command %s", err, command)
			}
			// Either a lock does without, or it says the same.
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			l, err := client.Acquire(ctx, "stock")
			if err == nil {
				err = l.Release(ctx)
			}
			if err != nil && (!strings.Contains(strings.ToLower(err.Error()), strings.ReplaceAll(want, "redquorum_ping:", "stock")) || ctx.Err() != nil) {
				t.Errorf("got %v, want one that names %s", err, want)
			}
			m.Clean(patience) // at the latest when what could not be released has run out
		})
	}
}

// Where messages are not permitted, who waits polls, and the log says what is missing, once for each node.
func TestRealWaitsWithoutMessagesAreLogged(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for missing, want := range map[string]string{
		"+subscribe":                     "'subscribe' command",
		"&redisson_lock__channel:shop:*": "redisson_lock__channel:shop:{eu}:stock",
	} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			m := confined(t, "shop:")
			m.permit(slices.DeleteFunc(rulesFor(t, "shop:"), func(rule string) bool { return rule == missing }))
			holder, waiter := m.app("shop:"), m.app("shop:")
			l := mustGet(t, holder, "{eu}:stock")
			got := make(chan *quorum.Lease, 1)
			go func() {
				l, err := waiter.Acquire(t.Context(), "{eu}:stock")
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			m.eventually("said what is missing", func() bool { return strings.Count(m.Log.String(), want) == len(m.Servers) })
			mustRelease(t, l)
			select {
			case l := <-got:
				mustRelease(t, l)
			case <-time.After(patience):
				t.Fatal("still waits")
			}
			if logged := m.Log.String(); strings.Count(logged, want) != len(m.Servers) || strings.Contains(logged, secret) {
				t.Errorf("logged: %s", logged)
			}
			m.Clean(time.Second)
		})
	}
}
