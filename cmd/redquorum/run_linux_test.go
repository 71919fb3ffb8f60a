package main

import (
	"path/filepath"
	"testing"
)

// Who is killed cannot give the lock back, and must not leave a command behind that goes on when it has run out.
func TestRunThatIsKilledTakesTheCommandAlong(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "pid")
	cmd := s.start("--ttl", "1s", "stock", "--", "sh", "-c", `trap "" TERM; echo $$ > $0; while :; do sleep 1; done`, file)
	pid := written(t, file)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	hasEnded(t, pid)
	if l := s.hold("stock"); l.Err() != nil { // when the TTL has passed
		t.Error(l.Err())
	}
}
