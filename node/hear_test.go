package node_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
)

// resubscribes breaks the connection, and waits until messages arrive again, as the listeners are told.
func resubscribes(t *testing.T, s *redisserver.Server, e *ear, breakIt func()) {
	t.Helper()
	before := e.subscribed()
	breakIt()
	eventually(t, "subscribed once more", func() bool { return e.subscribed() > before })
	if got := publish(t, s, "a", "after"); got != 1 {
		t.Errorf("%d connections hear a message, want one", got)
	}
	eventually(t, "heard", func() bool { return slices.Contains(e.messages(), "after") })
}

func TestEveryNewConnectionIsTold(t *testing.T) {
	for title, breakIt := range map[string]func(*testing.T, *redisserver.Server){
		"restarted, empty": func(t *testing.T, s *redisserver.Server) {
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"the connection is killed": func(t *testing.T, s *redisserver.Server) {
			if n, err := s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Int(); err != nil || n != 1 {
				t.Fatal(n, err)
			}
		},
		"down for a while": func(t *testing.T, s *redisserver.Server) {
			s.Kill()
			time.Sleep(3 * beat) // for some attempts that fail
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"stopped": func(t *testing.T, s *redisserver.Server) {
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * beat) // long enough to be noticed
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := redisserver.Start(t)
			n := open(t, s.URL())
			e, stop := listen(t, n, "a")
			defer stop()
			for range 2 {
				resubscribes(t, s, e, func() { breakIt(t, s) })
			}
		})
	}
}

// A server that stops does not hang up; only its silence tells.
func TestSilentConnectionIsReplaced(t *testing.T) {
	stopped := make(chan struct{})
	var conns atomic.Int32
	f := serve(t, func(c []string) string {
		select {
		case <-stopped:
			return hang
		default:
		}
		switch strings.ToUpper(c[0]) {
		case "SUBSCRIBE":
			conns.Add(1)
			return fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(c[1]), c[1])
		case "PING":
			return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
		}
		return ""
	})
	n := open(t, f.url())
	_, stop := listen(t, n, "a")
	defer stop()
	pings := f.count("PING")
	eventually(t, "some heartbeats", func() bool { return f.count("PING") >= pings+4 })
	if conns.Load() != 1 {
		t.Fatalf("a connection that answers was replaced: %d", conns.Load())
	}
	dials := f.count("HELLO")
	close(stopped)
	start := time.Now()
	eventually(t, "replaced", func() bool { return f.count("HELLO") > dials })
	if took := time.Since(start); took < beat || took > 10*beat {
		t.Errorf("noticed after %v, want about %v", took, 2*beat)
	}
}

func TestListeningWithoutPermissionIsNoBusyLoop(t *testing.T) {
	s := redisserver.Start(t)
	if err := s.Client().Do(t.Context(), "ACL", "SETUSER", "deaf", "on", ">pw", "~*", "resetchannels", "&mine:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	for title, tt := range map[string]struct{ url, channel string }{
		"the channel is forbidden": {"redis://deaf:pw@" + s.Addr(), "theirs"},
		"the password is wrong":    {"redis://deaf:no@" + s.Addr(), "mine:a"},
		"a database there is not":  {"redis://deaf:pw@" + s.Addr() + "/99", "mine:a"},
	} {
		t.Run(title, func(t *testing.T) {
			n := open(t, tt.url)
			connections := func() int64 {
				var total int64
				for line := range strings.Lines(s.Client().Info(t.Context(), "stats").Val()) {
					_, _ = fmt.Sscanf(line, "total_connections_received:%d", &total)
				}
				return total
			}
			before := connections()
			stop := n.Listen(tt.channel, 10*time.Millisecond, func(e node.Event) { t.Errorf("heard %+v", e) })
			time.Sleep(300 * time.Millisecond) // without a pause it would be hundreds
			stop()
			if tries := connections() - before; tries < 2 || tries > 15 {
				t.Errorf("tried %d times in 0.3 s", tries)
			}
		})
	}
}
