package redisserver

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

const patience = 10 * time.Second

// ask runs PING with a bound that a healthy server never meets.
func ask(s *Server, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return s.Client().Ping(ctx).Err()
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(readyPoll) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func set(t *testing.T, s *Server, key string) {
	t.Helper()
	if err := s.Client().Set(t.Context(), key, "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func keys(t *testing.T, s *Server) int64 {
	t.Helper()
	n, err := s.Client().DBSize(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestServersAreIndependent(t *testing.T) {
	servers := StartN(t, 3)
	set(t, servers[0], "only here")
	for i, want := range []int64{1, 0, 0} {
		if got := keys(t, servers[i]); got != want {
			t.Errorf("server %d of %v has %d keys, want %d", i, URLs(servers), got, want)
		}
	}
}

func TestRestartKeepsThePortAndNothingElse(t *testing.T) {
	s := Start(t)
	addr, pid := s.Addr(), s.PID()
	set(t, s, "forgotten")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr || s.PID() == pid {
		t.Errorf("restarted from %s (%d) to %s (%d)", addr, pid, s.Addr(), s.PID())
	}
	if n := keys(t, s); n != 0 {
		t.Errorf("the new process has %d keys", n)
	}
}

func TestRestartWithPersistenceKeepsKeys(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	set(t, s, "kept")
	s.Kill()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if n := keys(t, s); n != 1 {
		t.Errorf("the new process has %d keys, want the one that was written", n)
	}
}

func TestRestartWithOtherSettingsKeepsTheDirectory(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	set(t, s, "kept")
	for range 2 { // and they stay
		if err := s.RestartWith("--appendfsync", "everysec"); err != nil {
			t.Fatal(err)
		}
		got, err := s.Client().ConfigGet(t.Context(), "append*").Result()
		if err != nil || got["appendonly"] != "yes" || got["appendfsync"] != "everysec" || keys(t, s) != 1 {
			t.Errorf("%d keys with %v, %v", keys(t, s), got, err)
		}
	}
}

func TestKilledServerRefusesConnections(t *testing.T) {
	s := Start(t)
	s.Kill()
	s.Kill() // a dead server is left as it is
	if s.PID() != 0 {
		t.Errorf("a killed server has process %d", s.PID())
	}
	if c, err := net.Dial("tcp4", s.Addr()); err == nil {
		c.Close()
		t.Errorf("%s still accepts connections", s.Addr())
	}
	if err := s.Pause(); err == nil {
		t.Error("pausing a killed server: want an error")
	}
}

func TestPausedServerAnswersOnceResumed(t *testing.T) {
	s := Start(t)
	if err := ask(s, patience); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := ask(s, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asking a paused server: %v, want a timeout", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := ask(s, patience); err != nil {
		t.Errorf("asking a resumed server: %v", err)
	}
}

// A request that a paused server has received must not outlive its process.
func TestKillDoesNotWakeAPausedServer(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c, err := net.Dial("tcp4", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("SET late 1\r\n")); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if n := keys(t, s); n != 0 {
			t.Fatal("the killed server carried out what it had received while paused")
		}
		c.Close()
		if c, err = net.Dial("tcp4", s.Addr()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPasswordProtectedServerCountsAsReady(t *testing.T) {
	s := Start(t, "--requirepass", "secret")
	if err := ask(s, patience); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("asking without the password: %v, want NOAUTH", err)
	}
}

func TestLaunchSaysWhatTheServerComplainedOf(t *testing.T) {
	Require(t)
	s, err := Launch(Options{Args: []string{"--no-such-setting", "1"}})
	if err == nil {
		s.Close()
		t.Fatal("launched with an unknown setting")
	}
	if !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("the error does not name the setting: %v", err)
	}
}

func TestLaunchWithoutBinary(t *testing.T) {
	_, err := Launch(Options{Binary: "no-such-redis-server"})
	if !errors.Is(err, ErrNoBinary) {
		t.Errorf("got %v, want ErrNoBinary", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	Require(t)
	s, err := Launch(Options{})
	if err != nil {
		t.Fatal(err)
	}
	set(t, s, "key")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the working directory is still there: %v", err)
	}
	if c, err := net.Dial("tcp4", s.Addr()); err == nil {
		c.Close()
		t.Error("the server still accepts connections")
	}
	if err := s.Restart(); err == nil {
		t.Error("restarting a closed server: want an error")
	}
}
