//go:build unix

package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
)

// longWay is another address of a server, from which answers come later. Nobody who is content with a quorum waits for them.
func longWay(t *testing.T, server *redisserver.Server, later time.Duration) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer from.Close()
				to, err := net.Dial("tcp", server.Addr())
				if err != nil {
					return
				}
				all.Go(func() {
					defer to.Close()
					_, _ = io.Copy(to, from)
				})
				time.Sleep(later)
				_, _ = io.Copy(from, to)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return "redis://" + listener.Addr().String()
}

// Each run is a client that knows nothing yet. It finds out all the same that two addresses are one server, before it runs
// anything; whether it has waited or not.
func TestRunFindsOutThatTwoAddressesAreOneServer(t *testing.T) {
	t.Parallel()
	servers := redisserver.StartN(t, 2)
	urls := append(redisserver.URLs(servers), longWay(t, servers[0], 150*time.Millisecond))
	marker := filepath.Join(t.TempDir(), "ran")
	for _, args := range [][]string{{"run", "--try"}, {"run"}, {"run", "--wait", "1m"}} {
		status, _, complaints := (&site{t: t}).do(append(args, "--nodes", strings.Join(urls, ","), "stock", "--", "touch", marker)...)
		if status != notRun || !strings.Contains(complaints, "two of the addresses are one server") || exists(marker) {
			t.Errorf("%q: exit status %d:\n%s", args, status, complaints)
		}
	}
	for _, s := range servers {
		if left := s.Client().Exists(t.Context(), "stock").Val(); left != 0 {
			t.Error("it was not given back")
		}
	}
}

// A node that does not answer is no reason not to run, nor to wait for it for long.
func TestRunGoesOnWithoutAMinority(t *testing.T) {
	servers := redisserver.StartN(t, 3)
	t.Setenv(nodesVariable, strings.Join(redisserver.URLs(servers), ","))
	s := &site{t: t}
	if status, _, complaints := s.do("run", "stock", "--", "true"); status != 0 || complaints != "" {
		t.Errorf("exit status %d:\n%s", status, complaints)
	}
	if err := servers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	away := "redquorum: a node does not answer (node " + servers[1].Addr() + "): "
	for range 2 {
		status, out, complaints := s.do("run", "--ttl", "2s", "stock", "--", "echo", "at work")
		if status != 0 || out != "at work\n" || strings.Count(complaints, away) != 1 || strings.Count(complaints, "\n") != 1 {
			t.Errorf("exit status %d, printed %q:\n%s", status, out, complaints)
		}
		servers[1].Kill()
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
