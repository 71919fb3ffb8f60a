package redisserver

import (
	"os"
	"strings"
	"testing"
)

// Require skips the test where there is no redis-server, unless
// REDQUORUM_REQUIRE_REDIS=1 says that there has to be one.
func Require(t testing.TB) {
	t.Helper()
	_, err := findBinary("")
	switch {
	case err == nil:
	case os.Getenv("REDQUORUM_REQUIRE_REDIS") == "1":
		t.Fatalf("REDQUORUM_REQUIRE_REDIS=1, but %v", err)
	default:
		t.Skipf("needs a real server: %v", err)
	}
}

// Start launches a server for the length of the test; args are further
// arguments of redis-server. If the test fails, the server's log is printed.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return launched(t, Options{Args: args})
}

// StartTLS launches a server that speaks TLS besides, as Start does.
func StartTLS(t testing.TB, how TLS, args ...string) *Server {
	t.Helper()
	return launched(t, Options{TLS: &how, Args: args})
}

// launched launches a server for the length of the test.
func launched(t testing.TB, opts Options) *Server {
	t.Helper()
	Require(t)
	opts.Dir = t.TempDir()
	s, err := Launch(opts)
	if err != nil && opts.TLS != nil && os.Getenv("REDQUORUM_REQUIRE_REDIS") != "1" && withoutTLS(err) {
		t.Skipf("needs a server that was built with TLS: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("redis-server %s logged:\n%s", s.Addr(), s.Log())
		}
	})
	return s
}

// StartN launches n servers that know nothing of each other, as Start does.
func StartN(t testing.TB, n int) []*Server {
	t.Helper()
	servers := make([]*Server, n)
	for i := range servers {
		servers[i] = Start(t)
	}
	return servers
}

// URLs are the servers' addresses, in their order.
func URLs(servers []*Server) []string {
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.URL()
	}
	return urls
}

// withoutTLS tells whether a server did not start because it knows no TLS. Redis
// shows the setting at which it gives up.
func withoutTLS(err error) bool {
	return strings.Contains(err.Error(), "Bad directive") && strings.Contains(err.Error(), "tls-port")
}
