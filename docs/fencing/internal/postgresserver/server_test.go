package postgresserver

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

const orphanEnv = "REDQUORUM_TEST_LAUNCH_AND_HANG"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		launchAndHang()
	}
	goleak.VerifyTestMain(m)
}

func launch(t *testing.T) *Server {
	t.Helper()
	var s Shared
	server := s.Get(t)
	t.Cleanup(s.Close)
	return server
}

func TestServerAnswersAndCloseLeavesNothing(t *testing.T) {
	s := launch(t)
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	var one int
	if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Errorf("got %d, %v", one, err)
	}
	conn.Close(t.Context())

	s.Close()
	s.Close()
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server's directory is still there: %v", err)
	}
	if conn, err := pgx.Connect(t.Context(), s.DSN()); err == nil {
		conn.Close(t.Context())
		t.Error("the server still answers")
	}
}

// A test binary that is killed, or runs into its time limit, runs no cleanups.
func TestServerDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	launch(t) // or skip
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	dir, err := bufio.NewReader(out).ReadString('\n')
	orphan := Server{dir: strings.TrimSpace(dir)}
	if err == nil {
		defer os.RemoveAll(orphan.dir)
		err = ping(t.Context(), orphan.DSN())
	}
	if kill := parent.Process.Kill(); kill != nil {
		t.Error(kill)
	}
	_ = parent.Wait() // "signal: killed"
	if err != nil {
		t.Fatalf("the program's server in %q: %v", orphan.dir, err)
	}
	for deadline := time.Now().Add(readyTimeout); ping(t.Context(), orphan.DSN()) == nil; time.Sleep(readyPoll) {
		if time.Now().After(deadline) {
			t.Fatalf("the server outlived the program that started it by %v", readyTimeout)
		}
	}
}

// launchAndHang is a program that starts a server and never cleans up.
func launchAndHang() {
	s, err := Launch()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.dir)
	select {}
}

func TestVersionsCompareAsNumbers(t *testing.T) {
	if a, b := version("/usr/lib/postgresql/9.6/bin"), version("/usr/lib/postgresql/15/bin"); a >= b {
		t.Errorf("%v is not older than %v", a, b)
	}
}

// verdict is a test that notes what it is told. Its Fatalf and Skipf end the goroutine, as a test's do.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (*verdict) Helper()        {}
func (*verdict) Cleanup(func()) {}
func (v *verdict) Skipf(string, ...any) {
	v.skipped = true
	runtime.Goexit()
}

func (v *verdict) Fatalf(string, ...any) {
	v.failed = true
	runtime.Goexit()
}

func TestMissingServerSkipsUnlessRequired(t *testing.T) {
	t.Setenv("REDQUORUM_POSTGRES_BIN", t.TempDir())
	for _, c := range []struct {
		required        string
		skipped, failed bool
	}{
		{"", true, false},
		{"1", false, true},
	} {
		t.Setenv("REDQUORUM_REQUIRE_POSTGRES", c.required)
		var got verdict
		done := make(chan struct{})
		go func() {
			defer close(done)
			new(Shared).Get(&got)
		}()
		<-done
		if got.skipped != c.skipped || got.failed != c.failed {
			t.Errorf("required %q: skipped %v, failed %v", c.required, got.skipped, got.failed)
		}
	}
}
