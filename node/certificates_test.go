package node_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/internal/authority"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// files are the options of an address that name files.
func files(named ...string) string {
	options := url.Values{}
	for i := 0; i < len(named); i += 2 {
		options.Set(named[i], named[i+1])
	}
	return "?" + options.Encode()
}

func TestAddressNamesItsCertificates(t *testing.T) {
	ca := authority.New(t)
	s := secured(t, ca, "--user", "app", "on", ">"+secret+"/?#", "~*", "&*", "+@all")
	own := ca.Issue(t, "client")
	at := "rediss://app:" + url.QueryEscape(secret+"/?#") + "@" + s.SecureAddr() + "/1"
	n := open(t, at+files("cacert", ca.File, "cert", own.Cert, "key", own.Key, "pool_size", "3"))
	must(t, n, lock("a"), script.Granted)
	must(t, n, unlock("a"), script.Released)

	for title, tt := range map[string]struct{ options, why string }{
		"neither":    {"", "unknown authority"},
		"no client":  {files("cacert", ca.File), "certificate required"},
		"another CA": {files("cacert", authority.New(t).File, "cert", own.Cert, "key", own.Key), "unknown authority"},
	} {
		_, err := ask(open(t, at+tt.options), lock("a"), patience)
		wantError(t, err, verdict{permanent: true})
		if err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v, want one that says %s", title, err, tt.why)
		}
	}
}

// Who renews certificates writes the same files anew, while the process runs.
func TestClientCertificateIsReadForEveryConnection(t *testing.T) {
	ca := authority.New(t)
	s := secured(t, ca)
	own := ca.IssueExpired(t, "client")
	n := open(t, "rediss://"+s.SecureAddr()+files("cacert", ca.File, "cert", own.Cert, "key", own.Key))
	_, err := ask(n, lock("a"), patience)
	wantError(t, err, verdict{permanent: true})
	if renewed := ca.Issue(t, "client"); renewed.Cert != own.Cert || renewed.Key != own.Key {
		t.Fatal("other files")
	}
	must(t, n, lock("a"), script.Granted)
	if err := os.Remove(own.Key); err != nil {
		t.Fatal(err)
	}
	must(t, n, unlock("a"), script.Released) // over the connection that is there
	if err := s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new connection does without the file", func() bool {
		_, err := ask(n, lock("a"), patience)
		return err != nil && !node.Permanent(err) && strings.Contains(err.Error(), own.Key)
	})
}

func TestCertificatesThatAreNone(t *testing.T) {
	ca := authority.New(t)
	own, another := ca.Issue(t, "client"), ca.Issue(t, "another")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const at = "rediss://app:" + secret + "@host:1"
	for url, rule := range map[string]string{
		at + files("cacert", "/no/such"):                                "cacert: open /no/such",
		at + files("cacert", empty):                                     "cacert: " + empty + ": want certificates in PEM",
		at + files("cacert", ""):                                        "empty option cacert",
		at + files("cert", own.Cert):                                    "want both",
		at + files("key", own.Key):                                      "want both",
		at + files("cert", own.Cert, "key", "/no/such"):                 "open /no/such",
		at + files("cert", own.Cert, "key", another.Key):                own.Cert + " and " + another.Key,
		at + files("cert", empty, "key", own.Key):                       empty,
		at + files("cacert", ca.File) + "&cacert=x":                     "cacert twice",
		"redis://app:" + secret + "@host:1" + files("cacert", ca.File):  "want rediss://",
		"unix://app:" + secret + "@/tmp/x.sock" + files("key", own.Key): "want rediss://",
		at + files("cacert", ca.File, "no_such_option", "1"):            "options that go-redis knows",
	} {
		n, err := node.Open(url)
		if err == nil {
			_ = n.Close()
			t.Errorf("%s: accepted", url)
			continue
		}
		if !strings.Contains(err.Error(), rule) || !strings.HasPrefix(err.Error(), `node: address "`) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want one that says %s", url, err, rule)
		}
	}
}
