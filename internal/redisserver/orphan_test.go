package redisserver

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

const orphanEnv = "REDQUORUM_TEST_LAUNCH_AND_HANG"

// launchAndHang is a program that starts a server and never cleans up.
func launchAndHang() {
	s, err := Launch(Options{Dir: os.Getenv(orphanEnv)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	select {}
}

func TestServerDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	Require(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	addr = strings.TrimSpace(addr)
	if err == nil {
		err = ping(addr, time.Now().Add(patience))
	}
	if kill := cmd.Process.Kill(); kill != nil {
		t.Error(kill)
	}
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("the program's server at %q: %v", addr, err)
	}
	eventually(t, "the end of the server at "+addr+" after the program that started it", func() bool {
		c, err := net.Dial("tcp4", addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// A locked thread ends with its goroutine. Were a server started on the caller's
// thread, the kernel would take this for the death of its parent.
func TestServerOutlivesTheThreadOfItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child to a thread")
	}
	Require(t)
	var s *Server
	var err error
	tid := runOnDoomedThread(func() { s, err = Launch(Options{}) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	eventually(t, fmt.Sprintf("the end of thread %d", tid), func() bool { return !threadExists(tid) })
	if err := ask(s, patience); err != nil {
		t.Errorf("the server died with the thread: %v", err)
	}
}

// runOnDoomedThread runs f on a thread that ends after it, and returns its id.
func runOnDoomedThread(f func()) (tid int) {
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		runtime.LockOSThread() // and never unlock: the thread goes
		if tid = threadID(); tid == os.Getpid() {
			// The main thread never ends. While we sit on it, no other
			// goroutine is given it.
			tid = runOnDoomedThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-ran
	return tid
}
