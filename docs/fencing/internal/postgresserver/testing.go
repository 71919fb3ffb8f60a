package postgresserver

import (
	"errors"
	"os"
	"sync"
	"testing"
)

// Shared is one server for all tests of a package: making a cluster takes a second, making a schema in it nothing. The
// zero value is ready for use, and starts the server when the first test asks for it.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Get returns the server. It skips the test where this machine has none, unless REDQUORUM_REQUIRE_POSTGRES=1 says that
// there has to be one. A failed test prints what the server has logged.
func (s *Shared) Get(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = Launch() })
	switch {
	case s.err == nil:
	case !errors.Is(s.err, ErrNoServer):
		t.Fatal(s.err)
	case os.Getenv("REDQUORUM_REQUIRE_POSTGRES") == "1":
		t.Fatalf("REDQUORUM_REQUIRE_POSTGRES=1, but %v", s.err)
	default:
		t.Skipf("needs a real server: %v", s.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("postgres logged:\n%s", s.server.Log())
		}
	})
	return s.server
}

// Close ends the server, if there is one. Call it after the last test.
func (s *Shared) Close() {
	if s.server != nil {
		s.server.Close()
	}
}
