package node_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
)

// resubscribes breaks the connection, and waits until messages arrive again, as the listeners are told.
func resubscribes(t *testing.T, s *redisserver.Server, e *ear, breakIt func()) {
	t.Helper()
	before := e.subscribed()
	breakIt()
	eventually(t, "subscribed once more", func() bool { return e.subscribed() > before })
	eventually(t, "the server has noticed that the others are gone", func() bool { return len(subscribers(t, s)) == 1 })
	if got := publish(t, s, "a", "after"); got != 1 {
		t.Errorf("%d connections hear a message, want one", got)
	}
	eventually(t, "heard", func() bool { return slices.Contains(e.messages(), "after") })
}

func TestEveryNewConnectionIsTold(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for title, breakIt := range map[string]func(t *testing.T, s *redisserver.Server, dials *atomic.Int32){
		"restarted, empty": func(t *testing.T, s *redisserver.Server, _ *atomic.Int32) {
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"the connection is killed": func(t *testing.T, s *redisserver.Server, _ *atomic.Int32) {
			eventually(t, "it is killed", func() bool { // on a busy machine it may just have been given up, and come back
				n, err := s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Int()
				if err != nil {
					t.Fatal(err)
				}
				return n == 1
			})
		},
		"down for a while": func(t *testing.T, s *redisserver.Server, dials *atomic.Int32) {
			s.Kill()
			before := dials.Load()
			eventually(t, "some attempts fail", func() bool { return dials.Load() >= before+2 })
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"stopped": func(t *testing.T, s *redisserver.Server, dials *atomic.Int32) {
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			before := dials.Load()
			eventually(t, "it is noticed", func() bool { return dials.Load() > before })
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := redisserver.Start(t)
			var dials atomic.Int32
			n := with(t, &redis.Options{Addr: s.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return new(net.Dialer).DialContext(ctx, network, addr)
			}})
			e, stop := listen(t, n, "a")
			defer stop()
			for range 2 {
				resubscribes(t, s, e, func() { breakIt(t, s, &dials) })
			}
		})
	}
}

// A server that stops does not hang up; only its silence tells.
func TestSilentConnectionIsReplaced(t *testing.T) {
	stopped := make(chan struct{})
	var conns atomic.Int32
	var answered atomic.Int64
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
			answered.Add(1)
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
	eventually(t, "replaced", func() bool { return f.count("HELLO") > dials })
	if more := int64(f.count("PING")) - answered.Load(); more > 1 {
		t.Errorf("noticed after %d pings that were not answered", more)
	}
}

// A connection that comes back names all channels at once, and a slow one could not take so many in one node timeout.
func TestManyChannelsAreSubscribedInParts(t *testing.T) {
	const channels = 2500
	var most, subscribed atomic.Int64
	var breaks atomic.Bool
	f := serve(t, func(c []string) string {
		switch strings.ToUpper(c[0]) {
		case "SUBSCRIBE":
			most.Store(max(most.Load(), int64(len(c)-1)))
			subscribed.Add(int64(len(c) - 1))
			var replies strings.Builder
			for _, channel := range c[1:] {
				fmt.Fprintf(&replies, "*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(channel), channel)
			}
			return replies.String()
		case "PING":
			if breaks.Swap(false) {
				return hangUp
			}
			return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
		}
		return ""
	})
	n := open(t, f.url())
	for i := range channels {
		defer n.Listen(fmt.Sprint("stock-", i), beat, func(node.Event) {})()
	}
	eventually(t, "subscribed", func() bool { return subscribed.Load() == channels })
	breaks.Store(true)
	eventually(t, "subscribed again", func() bool { return subscribed.Load() == 2*channels })
	if got := most.Load(); got > 1000 {
		t.Errorf("one command named %d channels", got)
	}
}

// Who waits for a lock that goes back and forth between processes listens again and again. A connection made for each time
// would come too late for the release.
func TestConnectionIsKeptForWhoeverListensNext(t *testing.T) {
	f := serve(t, func(c []string) string {
		switch strings.ToUpper(c[0]) {
		case "SUBSCRIBE", "UNSUBSCRIBE":
			kind := strings.ToLower(c[0])
			return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:0\r\n", len(kind), kind, len(c[1]), c[1])
		}
		return ""
	})
	n := open(t, f.url())
	before := f.count("HELLO")
	for round := range 3 {
		e := &ear{}
		stop := n.Listen("a", time.Minute, e.hear)
		eventually(t, "subscribed", func() bool { return e.subscribed() > 0 })
		stop()
		eventually(t, "unsubscribed", func() bool { return f.count("UNSUBSCRIBE") > round })
	}
	if made := f.count("HELLO") - before; made != 1 {
		t.Errorf("made %d connections for one listener after the other, want one", made)
	}
}

// Whoever left a channel before that was confirmed is told nothing, and who comes next not before the server has subscribed it.
func TestConfirmationOfAChannelThatWasLeftIsNobodys(t *testing.T) {
	late := make(chan struct{})
	var asked atomic.Int32
	f := serve(t, func(c []string) string {
		kind := strings.ToLower(c[0])
		switch kind {
		case "subscribe":
			if c[1] == "a" {
				switch asked.Add(1) {
				case 1:
					<-late
				case 2:
					return hang
				}
			}
			fallthrough
		case "unsubscribe":
			return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:0\r\n", len(kind), kind, len(c[1]), c[1])
		}
		return ""
	})
	n := open(t, f.url())
	e := &ear{}
	stop := n.Listen("a", time.Minute, e.hear)
	eventually(t, "asked to subscribe", func() bool { return asked.Load() == 1 })
	stop()
	other := &ear{}
	defer n.Listen("b", time.Minute, other.hear)()
	close(late)
	eventually(t, "all confirmations until now have come", func() bool { return other.subscribed() > 0 })
	stop = n.Listen("a", time.Minute, e.hear)
	defer stop()
	eventually(t, "asked to subscribe again", func() bool { return asked.Load() == 2 })
	if e.subscribed() > 0 {
		t.Error("told that it is subscribed, which the server has not confirmed")
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
			before, start := connections(), time.Now()
			const budget = 10 * time.Millisecond
			stop := n.Listen(tt.channel, budget, func(e node.Event) {
				if e.Err == nil {
					t.Errorf("heard %+v", e)
				}
			})
			defer stop()
			eventually(t, "it goes on trying", func() bool { return connections() >= before+9 })
			// The pauses between nine attempts, of which each is twice the one before.
			if took := time.Since(start); took < 255*budget/10 {
				t.Errorf("nine attempts took %v", took)
			}
		})
	}
}

// Each new subscription has everybody who waits look again, so one that ends as soon as it is there is not tried for ever at the same
// pace.
func TestSubscriptionsThatEndAtOnceAreNoBusyLoop(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	subscribed := make(chan struct{}, 1)
	start := time.Now()
	const budget = 10 * time.Millisecond
	stop := n.Listen("a", budget, func(e node.Event) {
		if e.Subscribed {
			subscribed <- struct{}{}
		}
	})
	defer stop()
	for range 8 {
		<-subscribed
		if n, err := s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Int(); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	<-subscribed
	// The pauses between nine of them, of which each is twice the one before.
	if took := time.Since(start); took < 255*budget/10 {
		t.Errorf("nine subscriptions took %v", took)
	}
}
