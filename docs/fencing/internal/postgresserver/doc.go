// Package postgresserver runs a real PostgreSQL server for tests: what happens to a write that waited for a lock,
// and what a serialization failure is, no stand-in shows.
//
// [Launch] makes an empty cluster in a temporary directory, with initdb, and starts a server on it that listens on a unix
// socket in that directory and nowhere else. Everything is gone when Close returns, and on Linux the server ends with
// the test binary however that ends. [Shared] is one server for all tests of a package.
//
// PostgreSQL refuses to run as root. There the server, and nothing else, runs as the user postgres, whom the
// distributions' packages create.
//
// A machine without the server skips such tests, and says so. Where REDQUORUM_REQUIRE_POSTGRES=1 is set, as in CI, it is
// a failure. REDQUORUM_POSTGRES_BIN names the directory of binaries that are neither in PATH nor where Debian has them.
package postgresserver
