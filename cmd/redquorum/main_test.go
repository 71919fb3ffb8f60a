package main

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the test binary the command itself when it is called like it: by the tests, and by the demo, which
// starts itself again for each worker process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "demo" || os.Args[1] == "run") {
		main()
	}
	_ = flag.Set("test.parallel", "4") // by default: they wait more than they work, but each demo is several processes
	goleak.VerifyTestMain(m)
}

// eventually waits until ok; a test that never gets there fails.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("not in time: %s", what)
		}
	}
}
