package node_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/authority"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

func TestTLS(t *testing.T) {
	ca := authority.New(t)
	var asked atomic.Value // the name that the client asked for
	m := miniredis.NewMiniRedis()
	if err := m.StartTLS(&tls.Config{
		Certificates: []tls.Certificate{ca.Issue(t, "server").TLS},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked.Store(hello.ServerName)
			return nil, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	local := "localhost:" + m.Port()

	for title, config := range map[string]*tls.Config{
		"its certificate is checked":     {RootCAs: ca.Pool},
		"its certificate is not checked": {InsecureSkipVerify: true},
		"by another name":                {RootCAs: ca.Pool, ServerName: "localhost"},
	} {
		t.Run(title, func(t *testing.T) {
			asked.Store("")
			given := config.Clone()
			n := with(t, &redis.Options{Addr: local, TLSConfig: config})
			must(t, n, lock(title), script.Granted)
			must(t, n, unlock(title), script.Released)
			if asked.Load() != "localhost" {
				t.Errorf("asked for %q, want the server's name", asked.Load())
			}
			if config.ServerName != given.ServerName {
				t.Error("the caller's TLS configuration was changed")
			}
		})
	}
	t.Run("a certificate of somebody else's", func(t *testing.T) {
		_, err := ask(open(t, "rediss://"+local), lock("a"), patience)
		wantError(t, err, verdict{permanent: true})
		var unknown x509.UnknownAuthorityError
		if !errors.As(err, &unknown) {
			t.Errorf("got %v, want an unknown authority", err)
		}
	})
	t.Run("a server without TLS", func(t *testing.T) {
		f := serve(t, on("", ""))
		_, err := ask(open(t, "rediss://"+f.Addr().String()), lock("a"), budget)
		if err == nil || node.Sent(err) {
			t.Errorf("got %v, want an error before anything was sent", err)
		}
	})
}

// secured starts a server that shows a certificate, and wants one of the same authority.
func secured(t *testing.T, ca *authority.Authority, args ...string) *redisserver.Server {
	t.Helper()
	own := ca.Issue(t, "server")
	return redisserver.StartTLS(t, redisserver.TLS{Cert: own.Cert, Key: own.Key, CA: ca.File}, args...)
}

func TestTLSOfARealServer(t *testing.T) {
	ca := authority.New(t)
	s := secured(t, ca)
	n := with(t, &redis.Options{Addr: s.SecureAddr(), TLSConfig: &tls.Config{
		RootCAs: ca.Pool, Certificates: []tls.Certificate{ca.Issue(t, "client").TLS},
	}})
	for range 10 {
		must(t, n, lock("a"), script.Granted)
		must(t, n, unlock("a"), script.Released)
	}
	e, stop := listen(t, n, "a")
	defer stop()
	publish(t, s, "a", "over TLS")
	eventually(t, "heard", func() bool { return slices.Contains(e.messages(), "over TLS") })
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	endsInTime(t, n, verdict{timeout: true, sent: true})
	endsInTime(t, n, verdict{timeout: true}) // in the handshake
}

// Which of the two does not trust the other, and why, is said at once, and is nothing that waiting cures.
func TestCertificatesThatAreNotAccepted(t *testing.T) {
	ca, another := authority.New(t), authority.New(t)
	s := secured(t, ca)
	old := ca.IssueExpired(t, "old server")
	outdated := redisserver.StartTLS(t, redisserver.TLS{Cert: old.Cert, Key: old.Key})
	good := ca.Issue(t, "client").TLS
	for title, tt := range map[string]struct {
		server *redisserver.Server
		config *tls.Config
		why    string
	}{
		"the server's is of another authority": {s, &tls.Config{RootCAs: another.Pool, Certificates: []tls.Certificate{good}}, "unknown authority"},
		"the server's is another server's":     {s, &tls.Config{RootCAs: ca.Pool, ServerName: "example.com"}, "not example.com"},
		"the server's has expired":             {outdated, &tls.Config{RootCAs: ca.Pool}, "expired"},
		"the client has none":                  {s, &tls.Config{RootCAs: ca.Pool}, "certificate required"},
		"the client has none, TLS 1.2":         {s, &tls.Config{RootCAs: ca.Pool, MaxVersion: tls.VersionTLS12}, "handshake failure"},
		"the client's is of another authority": {s, &tls.Config{RootCAs: ca.Pool, GetClientCertificate: always(another.Issue(t, "client").TLS)}, "unknown certificate authority"},
		"the client's has expired":             {s, &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{ca.IssueExpired(t, "old client").TLS}}, "expired certificate"},
	} {
		t.Run(title, func(t *testing.T) {
			n := with(t, &redis.Options{Addr: tt.server.SecureAddr(), Password: secret, TLSConfig: tt.config})
			for range 20 { // whatever arrives first at the client, the alert or the end of the connection
				_, err := ask(n, lock("a"), patience)
				wantError(t, err, verdict{permanent: true})
				if err == nil || !strings.Contains(err.Error(), tt.why) || strings.Contains(err.Error(), secret) {
					t.Errorf("got %v, want one that says %s", err, tt.why)
				}
			}
		})
	}
}

// always shows a certificate, whatever authorities the server names. crypto/tls would show none that they have not signed.
func always(c tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
}
