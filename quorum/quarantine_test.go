package quorum_test

import (
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// How long a quarantine lasts, and what watching it costs.

// quarantineLeft is how long a node's quarantine lasts yet, on its own clock.
func (cl *cluster) quarantineLeft(i int) time.Duration {
	cl.t.Helper()
	until, err := strconv.ParseInt(cl.nodes[i].Redis().HGet(script.RecordKey, "until"), 10, 64)
	if err != nil {
		cl.t.Fatal(err)
	}
	return time.Until(time.UnixMicro(until))
}

// forgets restarts a node without its data and has clients notice.
func (cl *cluster) forgets(i int, clients ...*quorum.Coordinator) {
	cl.t.Helper()
	cl.nodes[i].Restart()
	for _, c := range clients {
		_, _ = c.Inspect(cl.t.Context(), "anything")
	}
	cl.eventually(time.Second, "a quarantine", func() bool { return cl.nodes[i].Redis().HGet(script.RecordKey, "until") != "" })
	time.Sleep(10 * time.Second) // the others have been asked once more
	synctest.Wait()
}

// knowsScripts has all nodes run the scripts: one that does not know them is checked.
func (cl *cluster) knowsScripts(c *quorum.Coordinator) {
	cl.t.Helper()
	l := mustAcquire(cl.t, c, cl.t.Context(), "scripts")
	_ = l.Renew(cl.t.Context())
	mustRelease(cl.t, l)
	time.Sleep(time.Second)
	synctest.Wait()
}

// A lease that nobody got needs no quarantine.
func TestRefusedTryWithALongLeaseTimeLengthensNoQuarantine(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for name, opts := range map[string]struct {
		warm bool // the client is connected before
		hung bool // a node does not answer the try
	}{"first request": {}, "connected": {warm: true}, "a node hangs": {warm: true, hung: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				holder, c := cl.client(quorum.Config{}), cl.client(quorum.Config{})
				if opts.warm {
					mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
				}
				l := mustAcquire(t, holder, t.Context(), "stock")
				synctest.Wait()
				if opts.hung {
					cl.nodes[0].Hold()
				}
				_, err := c.TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(month))
				wantIs(t, err, quorum.ErrNotAcquired)
				if opts.hung {
					time.Sleep(2 * time.Second)
					cl.nodes[0].Resume()
				}
				synctest.Wait()
				cl.forgets(2, c, holder)
				if left := cl.quarantineLeft(2); left > ttl {
					t.Errorf("node 2 is in quarantine for another %v", left)
				}
				for i, n := range cl.nodes {
					if longest := n.Redis().HGet(script.RecordKey, "ttl"); longest != strconv.FormatInt(ttl.Milliseconds(), 10) {
						t.Errorf("node %d knows of a TTL of %s ms", i, longest)
					}
				}
				mustRelease(t, l)
			})
		})
	}
}

func TestGrantedLongLeaseTimeLengthensTheNextQuarantine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(10*ttl))
		synctest.Wait()
		cl.forgets(2, c)
		if left := cl.quarantineLeft(2); left < 9*ttl || left > 10*ttl {
			t.Errorf("node 2 is in quarantine for another %v, want about %v", left, 10*ttl)
		}
		mustRelease(t, l)
	})
}

// A lease that was being taken while a node forgot lengthens the quarantine that has begun meanwhile.
func TestQuarantineIsProlongedForALeaseThatIsGranted(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		cl.nodes[2].Restart()
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		cl.eventually(time.Second, "a quarantine", func() bool { return cl.nodes[2].Redis().HGet(script.RecordKey, "until") != "" })
		cl.knowsScripts(c)
		time.Sleep(ttl * 3 / 4) // the others have been asked, and asked once more
		l := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(10*ttl))
		cl.eventually(time.Second, "a longer quarantine", func() bool { return cl.quarantineLeft(2) > 9*ttl })
		mustRelease(t, l)
	})
}

func TestVeryLongLeaseTimeIsLoggedOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{GuardTime: 2 * ttl})
		const text = "lease time is much longer than TTL and GuardTime"
		for _, tt := range []struct {
			d    time.Duration
			want int
		}{{20 * ttl, 0}, {20*ttl + time.Millisecond, 1}, {30 * ttl, 1}} {
			mustRelease(t, mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(tt.d)))
			if n := cl.log.count(text); n != tt.want {
				t.Errorf("%v: logged %d times, want %d", tt.d, n, tt.want)
			}
		}
	})
}

// A node that crashes again and again while another one is down costs no goroutine for each time.
func TestCrashLoopOfANodeCostsNoGoroutines(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{GuardTime: 24 * time.Hour})
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		cl.nodes[2].Kill()
		round := func() {
			cl.nodes[1].Restart()
			time.Sleep(5 * time.Second)
			_, err := c.TryAcquire(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNoQuorum)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if cl.nodes[1].Redis().HGet(script.RecordKey, "until") == "" {
				t.Fatal("nobody noticed the restart, and the test shows nothing")
			}
		}
		for range 3 {
			round()
		}
		before := runtime.NumGoroutine()
		for range 200 {
			round()
		}
		if n := runtime.NumGoroutine() - before; n > 3 {
			t.Errorf("%d goroutines more after 200 restarts", n)
		}
		cl.nodes[2].Start(true)
	})
}

// The clock of a node was ten years ahead when its quarantine began. When the clock is right again it takes no new
// connection to find that out.
func TestQuarantineIsShortenedWhenTheClockIsRightAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm"))
		node := cl.nodes[2]
		ahead := func() {
			node.Redis().SetTime(time.Now().Add(10 * 365 * 24 * time.Hour))
			_, _ = c.Inspect(t.Context(), "anything")
			synctest.Wait()
		}
		ahead() // it is known already that the clock ran off
		node.Restart()
		ahead()
		cl.eventually(time.Second, "a quarantine", func() bool { return node.Redis().HGet(script.RecordKey, "until") != "" })
		if left := cl.quarantineLeft(2); left < 9*365*24*time.Hour {
			t.Fatalf("the quarantine lasts %v, and the test shows nothing", left)
		}
		cl.knowsScripts(c)
		node.Redis().SetTime(time.Time{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock")) // the other two grant it
		cl.eventually(time.Second, "a quarantine of a full TTL", func() bool { return cl.quarantineLeft(2) <= ttl })
		if n := cl.log.count("quarantine shortened"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, cl.log)
		}
		time.Sleep(2 * ttl)
		way := &faultnet.Cable{}
		way.Cut(cl.nodes[0])
		mustRelease(t, mustAcquire(t, cl.clientOn(way, quorum.Config{}), t.Context(), "stock"))
	})
}
