//go:build unix

package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/internal/authority"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

const securedPassword = "s3cret-Of-All"

// secured are servers that show a certificate and want one, with a user who has the rights that doctor prints for a prefix.
type secured struct {
	site
	servers []*redisserver.Server
}

func newSecured(t *testing.T, ca *authority.Authority) *secured {
	t.Helper()
	s := &secured{site: site{t: t}}
	own := ca.Issue(t, "server")
	for range 3 {
		s.servers = append(s.servers, redisserver.StartTLS(t, redisserver.TLS{Cert: own.Cert, Key: own.Key, CA: ca.File}))
	}
	status, rules, complaints := s.do("doctor", "--acl", "shop:")
	if status != exact {
		t.Fatalf("exit status %d: %s", status, complaints)
	}
	s.permit(append([]string{"reset", "on", ">" + securedPassword}, strings.Fields(rules)...)...)
	return s
}

// permit changes what the user may do, on all servers.
func (s *secured) permit(rules ...string) {
	s.t.Helper()
	words := []any{"ACL", "SETUSER", "app"}
	for _, rule := range rules {
		words = append(words, rule)
	}
	for _, server := range s.servers {
		if err := server.Client().Do(s.t.Context(), words...).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// with names the servers, and in each address some files.
func (s *secured) with(files url.Values) {
	s.t.Helper()
	var urls []string
	for _, server := range s.servers {
		urls = append(urls, "rediss://app:"+securedPassword+"@"+server.SecureAddr()+"?"+files.Encode())
	}
	s.t.Setenv(nodesVariable, strings.Join(urls, ","))
}

// wants runs a command line, and returns what it says.
func (s *secured) wants(status int, args []string, says ...string) string {
	s.t.Helper()
	got, out, complaints := s.do(args...)
	if got != status {
		s.t.Errorf("%q: exit status %d, want %d:\n%s%s", args, got, status, out, complaints)
	}
	for _, text := range says {
		if !strings.Contains(out+complaints, text) {
			s.t.Errorf("%q: no %q in:\n%s%s", args, text, out, complaints)
		}
	}
	if strings.Contains(out+complaints, securedPassword) {
		s.t.Errorf("%q: the password is told:\n%s%s", args, out, complaints)
	}
	return out
}

// Over TLS, with an authority and a certificate of one's own and the smallest ACL, a new user gets as far as without.
func TestRealSecuredClusterOnTheCommandLine(t *testing.T) {
	ca := authority.New(t)
	s := newSecured(t, ca)
	client := ca.Issue(t, "client")
	files := url.Values{"cacert": {ca.File}, "cert": {client.Cert}, "key": {client.Key}}
	s.with(files)
	t.Setenv(prefixVariable, "shop:")

	s.wants(exact, []string{"inspect", "stock"}, `"stock" is free.`)
	s.wants(5, []string{"run", "stock", "--", "sh", "-c", `echo "$REDQUORUM_NAME has $REDQUORUM_TOKEN"; exit 5`}, "stock has 1")
	on := 0
	for _, server := range s.servers {
		n, err := server.Client().Exists(t.Context(), script.FenceKey("shop:stock")).Result()
		if err != nil {
			t.Fatal(err)
		}
		on += int(n)
	}
	if on < 2 {
		t.Errorf("%d servers know a token of the lock behind the prefix", on)
	}
	var state struct{ Verdict string }
	if err := json.Unmarshal([]byte(s.wants(exact, []string{"inspect", "--json", "stock"})), &state); err != nil || state.Verdict != "free" {
		t.Errorf("after the command: %+v, %v", state, err)
	}
	s.wants(exact, []string{"doctor"}, "3 of 3 nodes vote, and a quorum is 2; ", "CONFIG GET: NOPERM", "releases are heard of", "every address leads to a server of its own")
	s.wants(exact, []string{"release", "--force", "--yes", "stock"}, `"stock" was free.`)

	// What the help says ls needs besides.
	s.wants(failed, []string{"ls"}, "'scan' command")
	s.permit("+scan", "+hlen", "+hkeys")
	s.wants(exact, []string{"ls"}, `0 locks match "*" on 3 of 3 nodes.`)
	s.permit("+config|get")
	s.wants(exact, []string{"doctor", "--strict"}, "nothing is written to disk")

	// Who is not let in is told why, by each command with the status that it has for that.
	files.Del("cert")
	files.Del("key")
	s.with(files)
	s.wants(failed, []string{"inspect", "stock"}, "certificate required")
	s.wants(failed, []string{"doctor"}, "problem: reachability", "certificate required", "cert= and key=", "0 of 3 nodes vote")
	s.wants(notRun, []string{"run", "stock", "--", "true"}, "certificate required")
	files.Set("cacert", client.Cert)
	s.with(files)
	s.wants(failed, []string{"doctor"}, "is not one that this machine trusts")
}
