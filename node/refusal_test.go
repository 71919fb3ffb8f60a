package node_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// Whatever a version of Redis leaves unsaid about what is not permitted, the error says.
func TestRefusalsNameWhatTheServerDoesNot(t *testing.T) {
	const lockKeys = `["a" "redquorum_fence:{a}" "redquorum_node" "redquorum_revoked:{a}"]`
	pexpire := 1 + strings.Count(before(t, lock("a").Script().Source, "redis.call('PEXPIRE'"), "\n")
	for answer, want := range map[string]string{
		"NOPERM this user has no permissions to access one of the keys used as arguments":                                              lockKeys,
		"NOPERM No permissions to access a key":                                                                                        lockKeys,
		fmt.Sprintf("ERR The user executing the script can't run this command or subcommand script: ab, on @user_script:%d.", pexpire): "redis.call('PEXPIRE', 'a', '30000')",
		fmt.Sprintf("ERR Error running script (call to f_ab): @user_script: %d: -NOPERM this user has no permissions", pexpire):        "redis.call('PEXPIRE', 'a', '30000')",
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                             "'evalsha' command",
	} {
		f := serve(t, on("EVALSHA", "-"+answer+"\r\n"))
		_, err := ask(open(t, f.url()), lock("a"), patience)
		if !node.Refused(err) || !node.Permanent(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want one that ends with %s", answer, err, want)
		}
	}
}

func before(t *testing.T, text, words string) string {
	t.Helper()
	text, _, ok := strings.Cut(text, words)
	if !ok {
		t.Fatalf("no %s", words)
	}
	return text
}

// confined is a user of a server that may do what these rules say, and no more.
func confined(t *testing.T, s *redisserver.Server, rules []string) (url string) {
	t.Helper()
	words := []any{"ACL", "SETUSER", "app", "reset", "on", ">" + secret}
	for _, rule := range rules {
		words = append(words, rule)
	}
	if err := s.Client().Do(t.Context(), words...).Err(); err != nil {
		t.Fatal(err)
	}
	return "redis://app:" + secret + "@" + s.Addr()
}

// tryAll asks what no script can try.
func tryAll(t *testing.T, n *node.Node, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return n.Permitted(ctx, script.Prepare(script.Probe{Name: "shop:scratch"}).Keys(), script.Channel("shop:scratch"))
}

func TestPermittedNamesWhatIsMissing(t *testing.T) {
	s := redisserver.Start(t)
	rules := script.ACL("shop:")
	if err := tryAll(t, open(t, confined(t, s, rules)), patience); err != nil {
		t.Fatal(err)
	}
	if keys := s.Client().DBSize(t.Context()).Val(); keys != 0 {
		t.Errorf("left %d keys", keys)
	}
	for missing, named := range map[string]string{
		"~shop:*":                         `"shop:scratch"`,
		"~redquorum_fence:{shop:*":        `"redquorum_fence:{shop:scratch}"`,
		"~redquorum_revoked:{shop:*":      `"redquorum_revoked:{shop:scratch}"`,
		"~redquorum_node":                 `"redquorum_node"`,
		"&redisson_lock__channel:{shop:*": `"redisson_lock__channel:{shop:scratch}"`,
		"+eval":                           "'eval' command",
		"+pttl":                           "'pttl' command",
		"+pubsub|numsub":                  "'pubsub|numsub' command",
		"+subscribe":                      "'subscribe' command",
		"+ping":                           "'ping' command",
		"+unsubscribe":                    "'unsubscribe' command",
	} {
		if !slices.Contains(rules, missing) {
			t.Fatalf("there is no rule %s", missing)
		}
		without := slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == missing })
		err := tryAll(t, open(t, confined(t, s, without)), patience)
		wantError(t, err, verdict{refused: true, permanent: true})
		if err == nil || !strings.Contains(err.Error(), named) || strings.Contains(err.Error(), secret) {
			t.Errorf("without %s: %v, want one that names %s", missing, err, named)
		}
	}
}

func TestPermittedEndsInTime(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	if err := tryAll(t, n, patience); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		start := time.Now()
		wantError(t, tryAll(t, n, budget), verdict{timeout: true})
		if took := time.Since(start); took > patience/2 {
			t.Errorf("took %v", took)
		}
	}
	f := serve(t, on("SUBSCRIBE", hang)) // knows no other command
	if err := tryAll(t, open(t, f.url()), patience); !node.Refused(err) {
		t.Errorf("a server that knows no EVAL: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tryAll(t, n, budget); !errors.Is(err, node.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Who listens is told why nothing is heard, and hears again once it is permitted.
func TestListenersAreToldWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	s := redisserver.Start(t)
	for missing, named := range map[string]string{
		"+subscribe":                      "'subscribe' command",
		"+ping":                           "'ping' command",
		"&redisson_lock__channel:{shop:*": `["redisson_lock__channel:{shop:a}"]`,
	} {
		rules := script.ACL("shop:")
		n := open(t, confined(t, s, slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == missing })))
		e := &ear{}
		stop := n.Listen(script.Channel("shop:a"), patience/20, e.hear)
		eventually(t, "told what is missing", func() bool { return e.refused() != nil })
		err := e.refused()
		wantError(t, err, verdict{refused: true, permanent: true})
		if !strings.Contains(err.Error(), named) {
			t.Errorf("without %s: %v, want one that names %s", missing, err, named)
		}
		before := e.subscribed()
		_ = confined(t, s, rules)
		eventually(t, "subscribed, now that it is permitted", func() bool { return e.subscribed() > before })
		eventually(t, "heard", func() bool {
			publish(t, s, script.Channel("shop:a"), script.Free)
			return slices.Contains(e.messages(), script.Free)
		})
		stop()
	}
}

func TestPermanentIsWhatTheTwoSidesOfTLSCannotAgreeOn(t *testing.T) {
	alert := func(words string) error { return &net.OpError{Op: "remote error", Err: errors.New("tls: " + words)} }
	for err, want := range map[error]bool{
		&tls.CertificateVerificationError{Err: errors.New("x")}:                       true,
		tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}: true,
		alert("certificate required"):                                                 true,
		alert("unknown certificate authority"):                                        true,
		alert("expired certificate"):                                                  true,
		alert("bad certificate"):                                                      true,
		alert("handshake failure"):                                                    true,
		alert("protocol version not supported"):                                       true,
		alert("access denied"):                                                        true,
		alert("internal error"):                                                       false,
		alert("user canceled"):                                                        false,
		&net.OpError{Op: "remote error"}:                                              false,
		&net.OpError{Op: "read", Err: errors.New("bad certificate")}:                  false,
		errors.New("tls: bad certificate"):                                            false,
	} {
		if got := node.Permanent(&node.Error{Node: "n", Err: err}); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
