package quorum_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/internal/simulation"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// clocks is a cluster of three whose clocks a test can set, and three clients.
type clocks struct {
	*simulation.World
	t   *testing.T
	log *journal
}

// withClocks runs a test over a cluster in use.
func withClocks(t *testing.T, test func(t *testing.T, w *clocks)) {
	t.Helper()
	inOneThread(func() {
		synctest.Test(t, func(t *testing.T) {
			w := &clocks{simulation.New(1, 3, 3, simulation.Weather{Latency: time.Millisecond}), t, &journal{}}
			if err := w.open(0).Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			test(t, w)
		})
	})
}

// open opens a client's coordinator.
func (w *clocks) open(client int) *quorum.Coordinator {
	w.t.Helper()
	return w.openWith(client, quorum.Config{})
}

func (w *clocks) openWith(client int, cfg quorum.Config) *quorum.Coordinator {
	w.t.Helper()
	cl := w.Client(client)
	var nodes []*node.Node
	for i := range 3 {
		// Over one connection: every other would check the node, and hear what the test keeps from the client.
		n, err := node.New(&redis.Options{Addr: w.Node(i).Name(), Dialer: cl.Dialer(i)}, node.WithClock(cl.Clock()), node.WithBatches(1))
		if err != nil {
			w.t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	cfg.TTL, cfg.Clock, cfg.Logger = ttl, cl.Clock(), slog.New(slog.NewTextHandler(w.log, nil))
	c, err := quorum.New(nodes, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// flush makes a node forget everything.
func (w *clocks) flush(client, i int) {
	w.t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: w.Node(i).Name(), Dialer: w.Client(client).Dialer(i), DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // would ask the real DNS
	})
	defer rdb.Close()
	if err := rdb.FlushAll(w.t.Context()).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// cut takes the way to a node from a client, mend gives it back.
func (w *clocks) cut(client, node int) { w.Path(client, node, simulation.Weather{LoseAsk: 1}) }
func (w *clocks) mend(client, node int) {
	w.Path(client, node, simulation.Weather{Latency: time.Millisecond})
}

// The holder has nodes 0 and 1. The clock of node 1 is set forward, so its key is gone too early, and a contender is
// granted nodes 1 and 2.
func TestNodeWhoseClockIsSetDoesNotMakeASecondQuorum(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		other := w.open(1)
		if err := other.Ping(t.Context()); err != nil { // it has seen the clocks before
			t.Fatal(err)
		}
		w.cut(0, 2)
		w.cut(1, 0)
		l := mustAcquire(t, w.open(0), t.Context(), "stock", quorum.WithLeaseTime(ttl))
		w.Node(1).Skew(1, ttl+time.Second)

		_, err := other.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrClock)
		wantIs(t, err, quorum.ErrNoQuorum)
		if got := w.log.String(); !contains(got, "clock ran off", "node=b.sim:6379", "ahead=30.9", "for=30s") {
			t.Errorf("the log does not tell what happened:\n%s", got)
		}
		oneUntilTheEnd(t, other, l, ttl/50)
		// A guard time after the jump the node votes again.
		time.Sleep(2 * time.Second)
		mustRelease(t, mustAcquire(t, other, t.Context(), "stock"))
	})
}

// The clock runs twice as fast, and so the lease's keys end when half of it is left.
func TestNodeWhoseClockRunsTooFastDoesNotVote(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.open(0)
		w.cut(0, 2)
		l := mustAcquire(t, c, t.Context(), "stock") // watched, every 10 s
		w.Node(1).Skew(2, 0)
		time.Sleep(11 * time.Second)
		wantIs(t, l.Renew(t.Context()), quorum.ErrClock)
		<-l.Done()
		wantIs(t, l.Err(), quorum.ErrLost)
		// As long as it does, nothing is granted there.
		for range 100 {
			_, err := c.TryAcquire(t.Context(), "other")
			wantIs(t, err, quorum.ErrClock)
			time.Sleep(time.Second)
		}
		w.mend(0, 2)
		mustRelease(t, mustAcquire(t, c, t.Context(), "other")) // a quorum without it
		w.cut(0, 2)
		w.Node(1).Skew(1, 0)
		_, _ = c.TryAcquire(t.Context(), "other")
		time.Sleep(2 * ttl)
		mustRelease(t, mustAcquire(t, c, t.Context(), "other"))
	})
}

// The node has let go of the key, and a client that has never seen it before cannot know that its clock was set. The holder
// does, and puts the key back before anybody finds it missing.
func TestClockThatRanOffIsAReasonToRenew(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		holder, other := w.open(0), w.open(1)
		w.cut(0, 2)
		w.cut(1, 0)
		l := mustAcquire(t, holder, t.Context(), "stock")
		w.Node(1).Skew(1, ttl+time.Second)
		_, err := holder.TryAcquire(t.Context(), "other")
		wantIs(t, err, quorum.ErrClock)
		time.Sleep(10 * time.Millisecond)
		oneUntilTheEnd(t, other, l, 50*time.Millisecond)
	})
}

// Renewals that do not count are repeated as those that fail: less and less often.
func TestRenewalsThatDoNotCountBackOff(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.open(0)
		l := mustAcquire(t, c, t.Context(), "stock")
		for i := range 3 {
			w.Node(i).Skew(1, time.Hour)
		}
		_, err := c.TryAcquire(t.Context(), "other")
		wantIs(t, err, quorum.ErrClock)
		<-l.Done()
		if n := w.Counts().Scripts["renew renewed"] + w.Counts().Scripts["renew restored"]; n < 3*6 || n > 3*9 {
			t.Errorf("the nodes were asked %d times to renew", n)
		}
	})
}

// A clock that is set by little concerns short leases only, and they are over soon.
func TestSmallJumpCostsAVoteForAShortTime(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.open(0)
		w.cut(0, 2)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		w.Node(1).Skew(1, 50*time.Millisecond) // no more than the drift of 5 s
		_, err := c.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrClock)
		time.Sleep(9 * time.Second)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
	})
}

// It is the same whether a node's clock is ahead or behind: nobody knows when its keys end.
func TestClockThatIsSetBackIsReported(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.open(0)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		w.Node(1).Skew(1, -time.Hour)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock")) // the others are a quorum
		time.Sleep(time.Second)
		if got := w.log.String(); !contains(got, "clock ran off", "node=b.sim:6379", "ahead=-59m59.9") && !contains(got, "ahead=-1h0m0") {
			t.Errorf("the log does not tell what happened:\n%s", got)
		}
	})
}

// A machine whose clock stands still while it is moved to another host sees all nodes run ahead. Its leases have ended
// before it thinks so; at least it renews none of them, and takes no other.
func TestOwnClockThatStoodStillEndsTheLease(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.open(0)
		l := mustAcquire(t, c, t.Context(), "stock")
		w.Client(0).Skew(0.000001, 0)
		time.Sleep(time.Minute)
		w.Client(0).Skew(1, 0)
		_, err := c.TryAcquire(t.Context(), "other")
		wantIs(t, err, quorum.ErrClock)
		if got := w.log.String(); !contains(got, "more likely it was this machine's clock") {
			t.Errorf("the log does not tell what happened:\n%s", got)
		}
		wantIs(t, l.Renew(t.Context()), quorum.ErrClock)
		<-l.Done()
		wantIs(t, l.Err(), quorum.ErrLost)
	})
}

// Another machine takes over a node's address: its clock shows something else, and it has forgotten everything. That it
// is in quarantine would be enough, but who can tell that it is another machine? Its clock is not to blame.
func TestReplacedNodeIsNotBlamedForItsClock(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		synctest.Wait() // two answers would have done, and its clock is to be known
		cl.nodes[1].Restart()
		server := cl.nodes[1].Redis()
		server.SetTime(time.Now().Add(time.Hour))
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		time.Sleep(time.Second)
		if got := cl.log.String(); contains(got, "ran off") ||
			!contains(got, "a node was restarted") || !contains(got, "a node that forgot shows another time") {
			t.Errorf("the log tells something else:\n%s", got)
		}
	})
}

// A node forgets, somebody begins its quarantine, and its clock is set so that the quarantine is over at once. The
// contender was not there when it began, but it knows the clock from before.
func TestClockThatIsSetDuringAQuarantineDoesNotCutItShort(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		other, third := w.open(1), w.open(2)
		if err := other.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.cut(0, 2)
		w.cut(1, 0)
		l := mustAcquire(t, w.open(0), t.Context(), "stock", quorum.WithLeaseTime(ttl))
		w.cut(0, 0) // else the holder puts the key back
		w.cut(0, 1)
		w.flush(2, 1)
		mustRelease(t, mustAcquire(t, third, t.Context(), "other")) // its question finds no record
		time.Sleep(time.Second)
		w.Node(1).Skew(1, ttl-3*time.Second)
		oneUntilTheEnd(t, other, l, 50*time.Millisecond)
		time.Sleep(ttl)
		mustRelease(t, mustAcquire(t, other, t.Context(), "stock"))
	})
}

// A vote that did not count, because the node's clock was set, is none that a node in quarantine could be trusted for later.
func TestVoteOfANodeWhoseClockRanOffDoesNotCountInAQuarantine(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		start := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))) }
		l := mustAcquire(t, w.open(0), t.Context(), "stock", quorum.WithLeaseTime(ttl))
		renew := func() error {
			t.Helper()
			if err := l.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(100 * time.Millisecond) // the others have answered
			return l.Votes()[1].Err
		}
		if err := renew(); err != nil { // the last vote of node 1 that counts
			t.Fatal(err)
		}
		w.Node(1).Skew(1, 100*time.Millisecond) // ten seconds of drift
		wantIs(t, renew(), quorum.ErrClock)
		at(9 * time.Second)
		wantIs(t, renew(), quorum.ErrClock)
		w.cut(0, 1)
		at(20 * time.Second)
		_ = renew()
		w.flush(2, 1)
		mustRelease(t, mustAcquire(t, w.open(2), t.Context(), "other")) // its question finds no record
		at(32 * time.Second)
		w.mend(0, 1)
		wantIs(t, renew(), quorum.ErrQuarantined)
	})
}

// When the contender saw the jump, it had not heard that a lease of ten minutes is about. It hears of it soon after, and that
// is early enough.
func TestGuardTimeThatIsHeardOfAfterTheJumpHolds(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		other := w.open(1)
		if err := other.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.cut(0, 2)
		w.cut(1, 0)
		l := mustAcquire(t, w.open(0), t.Context(), "stock", quorum.WithLeaseTime(10*time.Minute))
		w.cut(0, 0) // else the holder puts the key back
		w.cut(0, 1)
		w.Node(1).Skew(1, 11*time.Minute)
		oneUntilTheEnd(t, other, l, time.Second)
	})
}

// A clock that is slewed runs off in bits, each of which harms short leases only. All together they harm long ones.
func TestClockThatIsSlewedDoesNotVoteForAsLongAsAfterAJump(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		other := w.open(1)
		w.cut(0, 2)
		l := mustAcquire(t, w.open(0), t.Context(), "stock", quorum.WithLeaseTime(ttl))
		w.cut(0, 0)
		w.cut(0, 1)
		w.Node(1).Skew(1.083, 0)
		time.AfterFunc(12*time.Second, func() { w.Node(1).Skew(1, 0) })
		oneUntilTheEnd(t, other, l, 50*time.Millisecond)
	})
}

// How long the votes do not count depends on the longest TTL in use, which somebody may have begun to use since the nodes
// were checked: they are checked again.
func TestClockThatRanOffIsAReasonToAskForTheLongestTTL(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.open(0)
		checks := func() int {
			time.Sleep(time.Second)
			return w.Counts().Scripts["check settled"]
		}
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		before := checks()
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		if n := checks(); n != before {
			t.Fatalf("%d checks without a reason, and the test shows nothing", n-before)
		}
		w.Node(1).Skew(1, time.Minute)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		if n := checks() - before; n < 3 {
			t.Errorf("%d nodes were asked, want 3", n)
		}
	})
}
