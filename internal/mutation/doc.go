// Command mutation tests the tests: it breaks the protocol, one rule at a time, and fails if no test notices.
//
//	go run ./internal/mutation             # every variant of the table
//	go run ./internal/mutation -core       # those that cost exclusion or tokens; CI runs this
//	go run ./internal/mutation -only fence # the variants whose name or file matches
//	go run ./internal/mutation -all        # with whole suites, to see every test that notices
//
// A variant is one edit of one file, the rule that it breaks, and the tests that have to fail with it. It is put in
// place of the file by "go test -overlay", so nothing in the tree is ever changed. A variant that does not compile, whose
// text is not found exactly once, or whose test is missing, skipped or fails without it is an error of the table: so
// the table cannot fall behind the code. Only tests in fake time, against miniredis or over loopback run; no
// redis-server is needed, and none is used.
//
// To add one, write it next to its neighbours in the table, in the file named after the subject: attempt.go, hold.go,
// wait.go, guard.go, lua.go (the scripts) and so on.
package main
