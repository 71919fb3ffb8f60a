package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Who has stopped the command, with Ctrl-Z say, reaches it by redquorum; and so does who has changed the window.
func TestRunPassesOnWhatGoesToAStoppedCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "pid")
	cmd := s.start("stock", "--", "sh", "-c",
		`trap "exit 42" WINCH; echo $$ > $0; kill -STOP $$; echo on > $0.on; while :; do sleep 0.05; done`, file)
	pid := written(t, file)
	eventually(t, "the command is stopped", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return bytes.Contains(text, []byte(") T "))
	})
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command goes on", func() bool { return exists(file + ".on") })
	if err := cmd.Process.Signal(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 42 {
		t.Errorf("exit status %d", code)
	}
	s.free("stock")
}

// Who is killed cannot give the lock back, and must not leave a command behind that goes on when it has run out.
func TestRunThatIsKilledTakesTheCommandAlong(t *testing.T) {
	t.Parallel()
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
