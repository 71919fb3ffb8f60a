package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// What a node makes of its sentinels. What real ones do when a master dies is in quorum/integration/real_sentinel_test.go.

// council is some sentinels that say what they are told to.
type council struct {
	mu      sync.Mutex
	answers []string // as they go over the wire
	fakes   []*fake
	asked   atomic.Int64
	during  func() // what happens while they are asked
}

// startCouncil starts three, all of which name a server.
func startCouncil(t *testing.T, addr string) *council {
	t.Helper()
	c := &council{answers: make([]string, 3)}
	for i := range c.answers {
		c.answers[i] = names(addr)
		c.fakes = append(c.fakes, serve(t, func(command []string) string {
			switch strings.ToLower(command[0]) {
			case "client":
				return "+OK\r\n"
			case "hello":
				return ""
			}
			c.asked.Add(1)
			if c.during != nil {
				c.during()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.answers[i]
		}))
	}
	return c
}

// names is the answer of a sentinel that names a server.
func names(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port)
}

// Answers of other sentinels.
const (
	knowsNone = "*-1\r\n"
	refuses   = "-NOAUTH Authentication required.\r\n"
)

// say makes them answer so.
func (c *council) say(answers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	copy(c.answers, answers)
}

func (c *council) url() string {
	var addrs []string
	for _, f := range c.fakes {
		addrs = append(addrs, f.Addr().String())
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/mymaster"
}

// leaping is a clock that a test can move on.
type leaping struct {
	clock.Clock
	by atomic.Int64
}

func (l *leaping) Now() clock.Instant { return l.Clock.Now().Add(time.Duration(l.by.Load())) }

func (l *leaping) leap(d time.Duration) { l.by.Add(int64(d)) }

// leaps returns a clock and the option to go by it.
func leaps() (*leaping, node.Option) {
	l := &leaping{Clock: clock.System()}
	return l, node.WithClock(l)
}

func TestNodeIsTheServerThatMostOfItsSentinelsName(t *testing.T) {
	s := miniredis.RunT(t)
	const elsewhere = "127.0.0.1:1"
	for title, answers := range map[string][]string{
		"all":                        {names(s.Addr()), names(s.Addr()), names(s.Addr())},
		"one names another":          {names(elsewhere), names(s.Addr()), names(s.Addr())},
		"one hangs":                  {names(s.Addr()), hang, names(s.Addr())},
		"one hangs up":               {hangUp, names(s.Addr()), names(s.Addr())},
		"one does not know the name": {names(s.Addr()), names(s.Addr()), knowsNone},
		"one refuses":                {refuses, names(s.Addr()), names(s.Addr())},
	} {
		t.Run(title, func(t *testing.T) {
			c := startCouncil(t, s.Addr())
			c.say(answers...)
			n := open(t, c.url())
			must(t, n, lock(title), script.Granted)
			if !n.BehindSentinel() {
				t.Error("it does not say that it is behind Sentinel")
			}
		})
	}
	for title, tt := range map[string]struct {
		answers   []string
		says      string
		permanent bool
	}{
		"each another":            {[]string{names(s.Addr()), names(elsewhere), names("127.0.0.1:2")}, "1 for " + s.Addr(), false},
		"one alone":               {[]string{names(s.Addr()), hang, hang}, "no answer in time", false},
		"nobody knows it":         {[]string{knowsNone, knowsNone, knowsNone}, `no master called "mymaster"`, false},
		"most refuse":             {[]string{refuses, names(s.Addr()), refuses}, "NOAUTH", true},
		"one refuses, one is off": {[]string{refuses, names(s.Addr()), hangUp}, "NOAUTH", false},
	} {
		t.Run(title, func(t *testing.T) {
			c := startCouncil(t, s.Addr())
			c.say(tt.answers...)
			_, err := ask(open(t, c.url()), lock(title), budget)
			wantError(t, err, verdict{permanent: tt.permanent})
			if !errors.Is(err, node.ErrNoMaster) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want one that says %s", err, tt.says)
			}
		})
	}
}

// The word of the sentinels is good for a while, and then they are asked again: not for every request, and not never.
func TestSentinelsAreAskedAgainAfterAWhile(t *testing.T) {
	s := miniredis.RunT(t)
	c := startCouncil(t, s.Addr())
	clk, option := leaps()
	n := open(t, c.url(), option)
	for round := range 3 {
		before := c.asked.Load()
		for i := range 10 {
			must(t, n, lock(fmt.Sprint(round, i)), script.Granted)
		}
		// Two agree, and the third is not waited for: it may be asked late, or spared.
		if got := c.asked.Load(); got < before+2 || got > int64(3*(round+1)) {
			t.Errorf("asked %d times in round %d, and %d until then", got-before, round, before)
		}
		clk.leap(time.Second)
	}
	c.say(hang, hang, hang)
	clk.leap(time.Second)
	_, err := ask(n, lock("b"), budget)
	wantError(t, err, verdict{})
	if !errors.Is(err, node.ErrNoMaster) {
		t.Errorf("got %v", err)
	}
	if s.Exists("b") {
		t.Error("it was asked all the same")
	}
}

// What they said was true at some moment between question and answer.
func TestWordOfTheSentinelsIsGoodFromTheQuestion(t *testing.T) {
	s := miniredis.RunT(t)
	c := startCouncil(t, s.Addr())
	clk, option := leaps()
	var slow sync.Once
	c.during = func() { slow.Do(func() { clk.leap(1500 * time.Millisecond) }) }
	n := open(t, c.url(), option)
	must(t, n, lock("a"), script.Granted)
	// Once for the request, and then for its connection. Two agree each time; the third may be spared.
	if got := c.asked.Load(); got < 4 {
		t.Errorf("they were asked %d times", got)
	}
}

// With the first word of another master the one before is left: requests, subscriptions and idle connections.
func TestServerThatWasReplacedIsLeft(t *testing.T) {
	old, next := miniredis.RunT(t), miniredis.RunT(t)
	c := startCouncil(t, old.Addr())
	clk, option := leaps()
	n := open(t, c.url(), option)
	must(t, n, lock("a"), script.Granted)
	e, stop := listen(t, n, "news")
	defer stop()
	old.Publish("news", "old")
	eventually(t, "heard", func() bool { return len(e.messages()) == 1 })

	c.say(names(next.Addr()), names(next.Addr()))
	clk.leap(time.Second)
	must(t, n, lock("b"), script.Granted)
	if !next.Exists("b") || old.Exists("b") {
		t.Error("the old one was asked")
	}
	eventually(t, "the old one is left", func() bool { return old.CurrentConnectionCount() == 0 })
	eventually(t, "subscribed to the new one", func() bool { return e.subscribed() == 2 })
	next.Publish("news", "new")
	eventually(t, "heard", func() bool { return len(e.messages()) == 2 })
}

// A connection that was on its way to the old master when the sentinels named another is none to the node.
func TestConnectionThatComesTooLateIsDropped(t *testing.T) {
	old, next := miniredis.RunT(t), miniredis.RunT(t)
	c := startCouncil(t, old.Addr())
	clk := &leaping{Clock: clock.System()}
	dialling, goOn := make(chan struct{}, 1), make(chan struct{})
	var sentinels []string
	for _, f := range c.fakes {
		sentinels = append(sentinels, f.Addr().String())
	}
	n, err := node.NewFailover(&redis.FailoverOptions{
		MasterName: "mymaster", SentinelAddrs: sentinels,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == old.Addr() {
				dialling <- struct{}{}
				<-goOn
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}, node.WithClock(clk))
	opened(t, n, err)
	late := make(chan error)
	go func() {
		_, err := ask(n, lock("late"), patience)
		late <- err
	}()
	<-dialling
	c.say(names(next.Addr()), names(next.Addr()))
	clk.leap(time.Second)
	for range 3 { // who asks the sentinels again, and waits for the connection
		if _, err := ask(n, lock("a"), 100*time.Millisecond); !errors.Is(err, node.ErrTimeout) {
			t.Errorf("got %v, want a timeout", err)
		}
	}
	close(goOn)
	if err := <-late; node.Sent(err) || err == nil {
		t.Errorf("got %v, want one that was not sent", err)
	}
	if old.Exists("late") {
		t.Error("the old one was asked")
	}
}

// Where nobody listens any more the sentinels are asked again at once: they may know already.
func TestSentinelsAreAskedAgainWhereNobodyListens(t *testing.T) {
	old, next := miniredis.RunT(t), miniredis.RunT(t)
	c := startCouncil(t, old.Addr())
	_, option := leaps() // which stands still, as far as anybody could tell
	n := open(t, c.url(), option)
	must(t, n, lock("a"), script.Granted)
	old.Close()
	c.say(names(next.Addr()), names(next.Addr()))
	eventually(t, "at the new one", func() bool {
		_, err := ask(n, lock("b"), budget)
		return err == nil
	})
}

// A server that has just become master is asked for nothing for three seconds, but what it is.
func TestServerThatWasPromotedIsLeftAlone(t *testing.T) {
	for _, standing := range []script.Standing{script.StandingSettled, script.StandingUnsettled} {
		t.Run(string(standing), func(t *testing.T) {
			quarantine, age := 30000, int64(0)
			if standing == script.StandingUnsettled {
				quarantine = 0
			}
			f := serve(t, func(command []string) string {
				switch word(command) {
				case "CHECK":
					if got := args(command)[5]; got != "3000" {
						t.Errorf("it is told that its predecessor lingers for %s ms", got)
					}
					reply := found(standing, "two")
					reply = strings.Replace(reply, "$3\r\nrun\r\n:0\r\n", fmt.Sprintf("$3\r\nrun\r\n:%d\r\n", quarantine), 1)
					return strings.Replace(reply, ":1000000\r\n", fmt.Sprintf(":%d\r\n", age), 1)
				case "ACQUIRE":
					return expiredUnless(command)
				}
				return ""
			})
			c := startCouncil(t, f.Addr().String())
			clk, option := leaps()
			n := open(t, c.url(), option)
			n.Guard(node.Guard{Client: uuid.NewString, Nodes: 3, TTL: func() time.Duration { return ttl }})
			for range 3 {
				_, err := ask(n, lock("a"), patience)
				wantError(t, err, verdict{})
				if !errors.Is(err, node.ErrPromoted) {
					t.Errorf("got %v", err)
				}
				clk.leap(900 * time.Millisecond)
			}
			clk.leap(500 * time.Millisecond)
			must(t, n, lock("a"), script.Granted)
		})
	}
}

// expiredUnless answers an acquire as the script does: it does nothing after its last moment.
func expiredUnless(command []string) string {
	if strings.HasPrefix(args(command)[0], "1") && len(args(command)[0]) > 1 {
		return told(script.Granted)
	}
	return told(script.Expired)
}

// Within two seconds of the sentinels' word a request is answered or given up, and takes no effect later.
func TestRequestEndsWithTheWordOfTheSentinels(t *testing.T) {
	t.Parallel()
	var last atomic.Int64
	f := serve(t, func(command []string) string {
		if word(command) == "ACQUIRE" || word(command) == "acquire" {
			last.Store(micros(t, args(command)[0]))
			return hang
		}
		return ""
	})
	c := startCouncil(t, f.Addr().String())
	n := open(t, c.url())
	start := time.Now()
	_, err := ask(n, lock("a"), time.Minute)
	wantError(t, err, verdict{sent: true, timeout: true})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if by := time.UnixMicro(last.Load()).Sub(start); by > 3*time.Second {
		t.Errorf("it may take effect for %v", by)
	}
}
