package node_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// beat is the node timeout of listeners.
const beat = 100 * time.Millisecond

// ear collects what is heard.
type ear struct {
	mu     sync.Mutex
	events []node.Event
}

func (e *ear) hear(ev node.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, ev)
}

// subscribed is how often it heard that messages arrive from now on.
func (e *ear) subscribed() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.events {
		if ev.Subscribed {
			n++
		}
	}
	return n
}

// refused is why nothing is heard, as it was told last.
func (e *ear) refused() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.events {
		if ev.Err != nil {
			err = ev.Err
		}
	}
	return err
}

func (e *ear) messages() (payloads []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.events {
		if !ev.Subscribed && ev.Err == nil {
			payloads = append(payloads, ev.Payload)
		}
	}
	return payloads
}

// listen begins to listen and returns when messages arrive.
func listen(t *testing.T, n *node.Node, channel string) (*ear, func()) {
	t.Helper()
	e := &ear{}
	stop := n.Listen(channel, beat, e.hear)
	eventually(t, "subscribed to "+channel, func() bool { return e.subscribed() > 0 })
	return e, stop
}

func publish(t *testing.T, s *redisserver.Server, channel, payload string) int64 {
	t.Helper()
	n, err := s.Client().Publish(t.Context(), channel, payload).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// subscribers are the ids of the server's connections that listen.
func subscribers(t *testing.T, s *redisserver.Server) (ids []string) {
	t.Helper()
	list, err := s.Client().Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(list) {
		id, _, _ := strings.Cut(line, " ")
		ids = append(ids, id)
	}
	return ids
}

func TestListenersHearWhatIsPublished(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	first, stop := listen(t, n, "a")
	defer stop()
	second, stop := listen(t, n, "a")
	defer stop()
	other, stop := listen(t, n, script.Channel("b"))
	defer stop()
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i))
		if got := publish(t, s, "a", want[i]); got != 1 {
			t.Fatalf("%d connections heard a message, want one", got)
		}
	}
	for _, e := range []*ear{first, second} {
		eventually(t, "all messages, in their order", func() bool { return slices.Equal(e.messages(), want) })
	}
	must(t, n, lock("b"), script.Granted)
	must(t, n, unlock("b"), script.Released)
	eventually(t, "a release is heard", func() bool { return slices.Equal(other.messages(), []string{script.Free}) })
}

func TestOneConnectionForAllListeners(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	var stops []func()
	for i := range 60 {
		_, stop := listen(t, n, fmt.Sprint("channel ", i%20))
		stops = append(stops, stop)
	}
	ids := subscribers(t, s)
	if len(ids) != 1 {
		t.Fatalf("60 listeners have %d connections, want one", len(ids))
	}
	for i, stop := range stops {
		stop()
		stop() // once is enough
		if i < len(stops)-1 {
			want := min(20, len(stops)-i-1) // the last listeners of their channels
			eventually(t, "unsubscribed", func() bool {
				return len(s.Client().PubSubChannels(t.Context(), "*").Val()) == want
			})
			if now := subscribers(t, s); !slices.Equal(now, ids) {
				t.Fatalf("after %d stops the connection is another one: %v, was %v", i+1, now, ids)
			}
		}
	}
	eventually(t, "the connection is gone after the last stop", func() bool { return len(subscribers(t, s)) == 0 })
	_, stop := listen(t, n, "again")
	stop()
}

// A waiter that leaves and one that comes must not cost each other the confirmation for which the second one waits.
func TestChannelLeftAndTakenUpAtOnce(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	_, stopOther := listen(t, n, "other")
	defer stopOther()
	_, stop := listen(t, n, "a")
	for i := range 300 {
		stop()
		if i%3 == 0 {
			runtime.Gosched()
		}
		e := &ear{}
		stop = n.Listen("a", beat, e.hear)
		if i%2 == 0 { // else it leaves unconfirmed
			eventually(t, fmt.Sprint("confirmed, round ", i), func() bool { return e.subscribed() > 0 })
			message := fmt.Sprint(i)
			eventually(t, "heard", func() bool {
				publish(t, s, "a", message)
				return slices.Contains(e.messages(), message)
			})
		}
	}
	stop()
}

// After stop has returned, nothing is called, however fast the messages come.
func TestNothingIsHeardAfterStop(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	over := make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(over)
	client := s.Client()
	group.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				client.Publish(context.Background(), "a", "x")
			}
		}
	})
	_, keep := listen(t, n, "a")
	defer keep()
	for range 100 {
		var stopped atomic.Bool
		heard := make(chan struct{}, 1)
		stop := n.Listen("a", beat, func(node.Event) {
			if stopped.Load() {
				t.Error("heard something after stop")
			}
			select {
			case heard <- struct{}{}:
			default:
			}
			runtime.Gosched()
			if stopped.Load() {
				t.Error("stop returned while a call was running")
			}
		})
		<-heard
		stop()
		stopped.Store(true)
	}
}

func TestStopWaitsForACallUnderWay(t *testing.T) {
	s := redisserver.Start(t)
	n := open(t, s.URL())
	began, goOn := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(goOn) })
	defer letGo() // else a test that failed would not end
	var once sync.Once
	var finished atomic.Bool
	stop := n.Listen("a", beat, func(node.Event) {
		once.Do(func() {
			close(began)
			<-goOn
			finished.Store(true)
		})
	})
	<-began
	done := make(chan struct{})
	go func() {
		stop()
		if !finished.Load() {
			t.Error("stop returned while a call was running")
		}
		close(done)
	}()
	eventually(t, "stop waits", func() bool { return blocked("sync.Mutex.Lock", "node.(*listeners).remove") })
	letGo()
	<-done
}

// blocked tells whether a goroutine is in a state, as the runtime calls it, in a call of a function.
func blocked(state, function string) bool {
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "["+state) && strings.Contains(g, function) {
			return true
		}
	}
	return false
}

// Listeners come and go, connections break, calls are made, and Close comes in the middle of it.
func TestListenersComeAndGo(t *testing.T) {
	s := redisserver.Start(t)
	for range 3 {
		n := open(t, s.URL())
		var group sync.WaitGroup
		for range 30 {
			group.Go(func() {
				for range 30 {
					stop := n.Listen(fmt.Sprint("c", rand.IntN(5)), beat, func(node.Event) {})
					if rand.IntN(2) == 0 {
						runtime.Gosched()
					}
					stop()
				}
			})
		}
		kill := s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub")
		_ = kill.Err() // whether there was one does not matter
		e, stop := listen(t, n, "steady")
		group.Wait()
		eventually(t, "heard", func() bool { publish(t, s, "steady", "x"); return len(e.messages()) > 0 })
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		count := len(e.messages())
		publish(t, s, "steady", "x")
		if len(e.messages()) != count {
			t.Error("heard something after Close")
		}
		stop()
	}
	eventually(t, "no connection is left", func() bool { return len(subscribers(t, s)) == 0 })
}

// Whatever the server does, Close ends the subscription, and soon.
func TestCloseEndsListeners(t *testing.T) {
	stopped := redisserver.Start(t)
	gone := serve(t, on("", ""))
	gone.stop()
	silent := serve(t, func([]string) string { return hang })
	if err := stopped.Pause(); err != nil {
		t.Fatal(err)
	}
	dial := new(net.Dialer).DialContext
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, io.ErrUnexpectedEOF
	}
	for _, server := range []redis.Options{
		{Addr: stopped.Addr(), Dialer: dial}, {Addr: gone.Addr().String(), Dialer: dial},
		{Addr: silent.Addr().String(), Dialer: dial}, {Addr: "blackhole:1", Dialer: never},
	} {
		dials, dial := make(chan struct{}, 1), server.Dialer
		server.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case dials <- struct{}{}:
			default:
			}
			return dial(ctx, network, addr)
		}
		n := with(t, &server)
		n.Listen("a", beat, func(e node.Event) { t.Errorf("%s: heard %+v", n.Name(), e) })
		<-dials // in the middle of connecting
		start := time.Now()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 10*beat {
			t.Errorf("%s: Close took %v", n.Name(), took)
		}
	}
}
