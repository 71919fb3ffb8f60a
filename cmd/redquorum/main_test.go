package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary the command itself when it is called like it: by the tests, and by the demo, which
// starts itself again for each worker process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "demo" {
		main()
	}
	goleak.VerifyTestMain(m)
}
