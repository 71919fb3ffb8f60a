package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// A connection that is closed the usual way delivers what was given up on, when the network lets it.
func TestGivenUpConnectionIsReset(t *testing.T) {
	plain := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	for title, dialer := range map[string]func(context.Context, string, string) (net.Conn, error){
		"our dialler": nil, "the caller's dialler": plain,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ended := make(chan error, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				defer conn.Close()
				for buf := make([]byte, 4096); err == nil; {
					_, err = conn.Read(buf)
				}
				ended <- err
			}()
			n := with(t, &redis.Options{Addr: l.Addr().String(), Dialer: dialer})
			if _, err := ask(n, lock("a"), budget); !errors.Is(err, node.ErrTimeout) {
				t.Errorf("got %v, want a timeout", err)
			}
			if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the server saw %v, want a reset", err)
			}
		})
	}
}

// The kernel takes requests in the name of a stopped server, which carries them out when it goes on, connection or not.
func TestGivenUpRequestHasNoEffectAfterTheServerWakes(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for title, route := range map[string]func(*testing.T, *redisserver.Server) string{
		"directly":           func(_ *testing.T, s *redisserver.Server) string { return s.Addr() },
		"over a slow detour": detour,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := redisserver.Start(t)
			n := open(t, "redis://"+route(t, s))
			must(t, n, lock("before"), script.Granted)
			must(t, n, script.Renew{Name: "before", Holder: "me:1", Count: 1, TTL: ttl, Token: 1}, script.Renewed)
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			for _, req := range []script.Request{
				lock("late"),
				script.Renew{Name: "late", Holder: "me:1", Count: 1, TTL: ttl, Token: 1},
			} {
				_, err := ask(n, req, budget)
				if !errors.Is(err, node.ErrTimeout) {
					t.Fatalf("a stopped server answered: %v", err)
				}
			}
			// Whoever gives up later than the request expires has waited long enough.
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
			must(t, n, lock("after"), script.Granted)
			// The server has the connections that were given up before the one that it just answered on, and closes each
			// once it has carried out what came over it. Then the one that asks and the one that works are left.
			eventually(t, "nothing is under way any more", func() bool {
				return strings.Count(s.Client().ClientList(t.Context()).Val(), "\n") == 2
			})
			if found := s.Client().Exists(t.Context(), "late").Val(); found != 0 {
				t.Error("a request took effect after it was given up")
			}
		})
	}
}

const detourDelay = 50 * time.Millisecond

// detour puts a proxy in front of a server, which takes its time and delivers even what was sent on a connection that
// has ended since.
func detour(t *testing.T, s *redisserver.Server) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(group.Wait)
	t.Cleanup(func() { _ = l.Close() })
	carry := func(to, from *net.TCPConn) {
		defer func() { _ = to.CloseWrite() }()
		for buf := make([]byte, 64<<10); ; {
			n, err := from.Read(buf)
			time.Sleep(detourDelay)
			if n > 0 {
				_, _ = to.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp4", s.Addr())
			if err != nil {
				_ = client.Close()
				return
			}
			var both sync.WaitGroup
			both.Go(func() { carry(server.(*net.TCPConn), client.(*net.TCPConn)) })
			both.Go(func() { carry(client.(*net.TCPConn), server.(*net.TCPConn)) })
			group.Go(func() { both.Wait(); _ = client.Close(); _ = server.Close() })
		}
	})
	return l.Addr().String()
}

// A connection that the server has hung up on is noticed before a request is lost on it.
func TestRestartBetweenCallsGoesUnnoticed(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	var dialer net.Dialer
	for title, options := range map[string]redis.Options{
		"our dialler": {}, "the caller's dialler": {Dialer: dialer.DialContext},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := redisserver.Start(t)
			options.Addr = s.Addr()
			n := with(t, &options)
			for range 3 {
				var group sync.WaitGroup
				for i := range 8 { // several connections
					group.Go(func() {
						if got, err := ask(n, lock(fmt.Sprint(i)), patience); err != nil || got.Status != script.Granted {
							t.Errorf("got %+v, %v", got, err)
						}
					})
				}
				group.Wait()
				if err := s.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			must(t, n, lock("a"), script.Granted)
		})
	}
}

func TestHundredsOfGoroutines(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	var group sync.WaitGroup
	for i := range 300 {
		name := fmt.Sprint("lock ", i)
		group.Go(func() {
			for range 5 {
				got, err := ask(n, lock(name), patience)
				if err != nil || got.Status != script.Granted || got.Holder != "me:1" {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
				if got, err := ask(n, unlock(name), patience); err != nil || got.Status != script.Released {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "rq") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "a@b.sock")
	s := redisserver.Start(t, "--unixsocket", socket, "--requirepass", "p/w@1")
	for _, n := range []*node.Node{
		open(t, "unix://:p%2Fw%401@"+socket),
		with(t, &redis.Options{Addr: socket, Password: "p/w@1"}),
		with(t, &redis.Options{Network: "unix", Addr: socket, Password: "p/w@1"}),
	} {
		must(t, n, lock("a"), script.Granted)
		must(t, n, unlock("a"), script.Released)
		if n.Name() != socket || n.Address() != "unix:"+socket {
			t.Errorf("called %q at %q", n.Name(), n.Address())
		}
	}
	n := open(t, "unix://:p%2Fw%401@"+socket)
	must(t, n, lock("a"), script.Granted)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	endsInTime(t, n, verdict{timeout: true, sent: true})
	_, err = ask(open(t, "unix://"+socket+".not"), lock("a"), patience)
	wantError(t, err, verdict{})
}

func TestCloseEndsADialThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := with(t, &redis.Options{Addr: "blackhole:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ended := make(chan error, 1)
		go func() {
			_, err := ask(n, lock("a"), time.Hour)
			ended <- err
		}()
		time.Sleep(time.Second)
		start := time.Now()
		_ = n.Close()
		if err := <-ended; err == nil {
			t.Error("no error without a connection")
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("went on dialling for %v", took)
		}
	})
}

func TestCallersDialerAndOnConnect(t *testing.T) {
	s := redisserver.Start(t)
	var dials, connects atomic.Int32
	refuse := errors.New("not today")
	var refusing atomic.Bool
	n := with(t, &redis.Options{
		Addr: "a name that nobody resolves",
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if network != "tcp" || addr != "a name that nobody resolves" {
				t.Errorf("dials %s %s", network, addr)
			}
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("dials without a deadline")
			}
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp4", s.Addr())
		},
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			connects.Add(1)
			if refusing.Load() {
				return refuse
			}
			return c.ClientSetName(ctx, "by_the_caller").Err()
		},
	})
	if dials.Load() != 0 {
		t.Error("New dials")
	}
	must(t, n, lock("a"), script.Granted)
	if list := s.Client().ClientList(t.Context()).Val(); !strings.Contains(list, "name=by_the_caller") {
		t.Errorf("the caller's OnConnect did nothing: %s", list)
	}
	if dials.Load() != 1 || connects.Load() != 1 {
		t.Errorf("%d dials and %d OnConnects, want one each", dials.Load(), connects.Load())
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	refusing.Store(true)
	_, err := ask(n, lock("a"), patience)
	wantError(t, err, verdict{})
	if !errors.Is(err, refuse) {
		t.Errorf("got %v, want what OnConnect said", err)
	}
}
