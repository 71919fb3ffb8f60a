package redisserver

import (
	"os"
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
	Require(t)
	s, err := Launch(Options{Dir: t.TempDir(), Args: args})
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
