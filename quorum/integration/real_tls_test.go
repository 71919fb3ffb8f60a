package integration_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/authority"
	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// secured are servers that show a certificate, want one of the client and its password, and let it do what the rules for a
// prefix say.
type secured struct {
	*machines
	ca     *authority.Authority
	client authority.Pair
}

const securedPrefix = "shop:"

// startSecured starts three of them. The servers' certificate is issued by issue.
func startSecured(t *testing.T, issue func(*authority.Authority, testing.TB, string) authority.Pair) *secured {
	t.Helper()
	m := &secured{machines: on(t, &quorumtest.Journal{}), ca: authority.New(t)}
	m.client = m.ca.Issue(t, "client")
	own := issue(m.ca, t, "server")
	for range 3 {
		m.Servers = append(m.Servers, redisserver.StartTLS(t, redisserver.TLS{Cert: own.Cert, Key: own.Key, CA: m.ca.File},
			append([]string{"--user", "app", "on", ">" + secret}, rulesFor(t, securedPrefix)...)...))
	}
	return m
}

// urls are the servers' addresses, for who has a password and some files.
func (m *secured) urls(password string, files map[string]string) (urls []string) {
	options := url.Values{}
	for option, file := range files {
		options.Set(option, file)
	}
	for _, s := range m.Servers {
		urls = append(urls, "rediss://app:"+password+"@"+s.SecureAddr()+"?"+options.Encode())
	}
	return urls
}

// files are those that a client names that is let in.
func (m *secured) files() map[string]string {
	return map[string]string{"cacert": m.ca.File, "cert": m.client.Cert, "key": m.client.Key}
}

func (m *secured) open(password string, files map[string]string) *quorum.Coordinator {
	m.T.Helper()
	return m.ClientAt(quorum.Config{Prefix: securedPrefix}, m.urls(password, files))
}

func TestRealSecuredClusterDoesWhatAnyDoes(t *testing.T) {
	t.Parallel()
	m := startSecured(t, (*authority.Authority).Issue)
	c := m.open(secret, m.files())
	m.reaches(c)

	// Whoever has the certificates in memory makes the nodes himself.
	var nodes []*node.Node
	for _, s := range m.Servers {
		n, err := node.New(&redis.Options{
			Addr: s.SecureAddr(), Username: "app", Password: secret,
			TLSConfig: &tls.Config{RootCAs: m.ca.Pool, Certificates: []tls.Certificate{m.client.TLS}},
		})
		m.Must(err)
		nodes = append(nodes, n)
	}
	other, err := quorum.New(nodes, quorum.Config{
		TTL: realTTL, NodeTimeout: realTimeout, Prefix: securedPrefix, Logger: slog.New(slog.NewTextHandler(m.Log, nil)),
	})
	m.Must(err)
	defer other.Close()

	l := mustGet(t, c, "stock")
	m.renewed(securedPrefix + "stock")
	got := make(chan *quorum.Lease, 1)
	go func() {
		l, err := other.Acquire(t.Context(), "stock")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	for i := range m.Servers { // over TLS, too: the user knows no other way in
		m.eventually("the waiter listens", func() bool { return m.listeners(i, script.Channel(securedPrefix+"stock")) == 1 })
	}
	mustRelease(t, l)
	l = <-got

	// A node that hangs costs nothing, and is in time again when it wakes.
	m.Pause(0)
	mustRelease(t, l)
	mustRelease(t, mustGet(t, c, "stock"))
	m.Resume(0)
	m.Clean(patience)
}

// Who is not let in is told why, at once, with the node's name and without the password: to wait would not help.
func TestRealSecuredClusterSaysWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	m := startSecured(t, (*authority.Authority).Issue)
	outdated := startSecured(t, (*authority.Authority).IssueExpired)
	stranger := authority.New(t)
	old, theirs := m.ca.IssueExpired(t, "old client"), stranger.Issue(t, "stranger")
	with := func(change map[string]string) map[string]string {
		files := m.files()
		for option, file := range change {
			files[option] = file
			if file == "" {
				delete(files, option)
			}
		}
		return files
	}
	for title, c := range map[string]struct {
		m        *secured
		password string
		files    map[string]string
		why      string
	}{
		"a wrong password":                     {m, wrong, m.files(), "WRONGPASS"},
		"servers that nobody vouches for":      {m, secret, with(map[string]string{"cacert": stranger.File}), "unknown authority"},
		"no certificate":                       {m, secret, with(map[string]string{"cert": "", "key": ""}), "certificate required"},
		"a certificate that has expired":       {m, secret, with(map[string]string{"cert": old.Cert, "key": old.Key}), "expired certificate"},
		"a certificate of somebody else's":     {m, secret, with(map[string]string{"cert": theirs.Cert, "key": theirs.Key}), "certificate"},
		"servers whose certificate is too old": {outdated, secret, outdated.files(), "expired"},
	} {
		t.Run(title, func(t *testing.T) {
			m := &secured{machines: on(t, m.Log, c.m.Servers...)}
			client := m.open(c.password, c.files)
			var told error
			m.wantRefused("Ping", func(ctx context.Context) error { told = client.Ping(ctx); return told }, c.why)
			for _, s := range m.Servers {
				if told == nil || !strings.Contains(told.Error(), s.SecureAddr()+" failed: ") {
					t.Errorf("%v: does not say why %s failed", told, s.SecureAddr())
				}
			}
			m.wantRefused("Acquire", anAcquire(client), c.why)
			m.Clean(time.Second)
		})
	}
}

// A server that accepts and says nothing keeps nobody beyond the node timeout, be it one of three or two.
func TestRealServerThatHangsInTheHandshakeCostsANodeTimeout(t *testing.T) {
	t.Parallel()
	m := startSecured(t, (*authority.Authority).Issue)
	urls := m.urls(secret, m.files())
	for i := range 2 {
		l, err := net.Listen("tcp4", "127.0.0.1:0") // the kernel accepts for it
		m.Must(err)
		defer l.Close()
		urls[i] = strings.Replace(urls[i], m.Servers[i].SecureAddr(), l.Addr().String(), 1)
		c := m.ClientAt(quorum.Config{Prefix: securedPrefix, NoRestartGuard: true}, urls)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		start := time.Now()
		lease, err := c.Acquire(ctx, "stock", quorum.WithWaitTime(0))
		took := time.Since(start)
		cancel()
		switch {
		case i == 0 && err != nil:
			t.Fatalf("with a quorum that answers: %v", err)
		case i == 0:
			mustRelease(t, lease)
		default:
			wantIs(t, err, quorum.ErrNoQuorum)
			wantIs(t, err, node.ErrTimeout)
			if !strings.Contains(err.Error(), l.Addr().String()) || took < realTimeout || took > patience/2 {
				t.Errorf("after %v: %v", took, err)
			}
		}
		m.Must(c.Close())
	}
	m.Clean(time.Second)
}
