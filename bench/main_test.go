package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/bench/internal/scenario"
)

// TestMain is a worker, too: those that measure between processes start their own program.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	if scenario.IsWorker() {
		main()
		return
	}
	code := m.Run()
	if err := leaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leaks waits longer than goleak does: a go-redis pool that could not dial goes on for a second after its Close.
func leaks() (err error) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}
