package quorum_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// bareMajority gives a client the lock on nodes 0 and 1 of three; node 2 never hears of it.
func bareMajority(t *testing.T, cl *cluster, cfg quorum.Config, opts ...quorum.Option) (*quorum.Lease, *faultnet.Cable) {
	t.Helper()
	cable := &faultnet.Cable{}
	cable.Cut(cl.nodes[2])
	l := mustAcquire(t, cl.clientOn(cable, cfg), t.Context(), "stock", opts...)
	if who := cl.holders("stock"); who[0] == "" || who[1] == "" || who[2] != "" {
		t.Fatalf("held on %q, want a bare majority", who)
	}
	return l, cable
}

// stillOne checks that nobody else gets the lock while its holder believes in it.
func stillOne(t *testing.T, other *quorum.Coordinator, l *quorum.Lease) {
	t.Helper()
	second, err := other.TryAcquire(t.Context(), "stock")
	if err == nil && l.Err() == nil {
		t.Fatalf("two holders: %s and %s", l.Holder(), second.Holder())
	}
	if err == nil {
		mustRelease(t, second)
	}
}

// oneUntilTheEnd looks now and then, for as long as a lease lives, whether there is a second holder.
func oneUntilTheEnd(t *testing.T, other *quorum.Coordinator, l *quorum.Lease, pause time.Duration) {
	t.Helper()
	for l.Err() == nil {
		stillOne(t, other, l)
		time.Sleep(pause)
	}
}

// distant makes the way to the nodes long enough that who finds the vote split does not ask again all the time.
func (cl *cluster) distant() {
	for _, n := range cl.nodes {
		n.Delay(5 * time.Millisecond)
	}
}

func TestRestartedEmptyNodeDoesNotMakeASecondQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, cable := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(ttl))
		before := cl.client(quorum.Config{})
		if err := before.Ping(t.Context()); err != nil { // with connections that the restart breaks
			t.Fatal(err)
		}
		cable.Cut(cl.nodes[1]) // or its holder gives it the lease back
		cl.nodes[1].Restart()
		_, err := before.TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		wantIs(t, err, quorum.ErrQuarantined)
		cl.distant()
		for l.Err() == nil {
			stillOne(t, before, l)
			stillOne(t, cl.client(quorum.Config{}), l)
			time.Sleep(ttl / 100)
		}
		// The guard time later the node votes again.
		time.Sleep(ttl)
		cl.nodes[2].Kill()
		mustRelease(t, mustAcquire(t, before, t.Context(), "stock"))
	})
}

// No connection breaks, and so nobody checks: only the incarnation that the acquire carries tells.
func TestFlushedNodeDoesNotMakeASecondQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		other := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, other, t.Context(), "warm"))
		l, _ := bareMajority(t, cl, quorum.Config{})
		cl.nodes[1].Redis().FlushAll()
		stillOne(t, other, l)
		if err := l.Renew(t.Context()); err != nil { // its own vote there has not run out
			t.Error(err)
		}
		mustRelease(t, l)
	})
}

// A restore on a node in quarantine, where the lease had no vote, must not make its quorum. The node may have forgotten
// a vote for somebody who needs just one more.
//
// The holder has nodes 0 and 1 and loses the way to 1. A contender is granted node 2, and its request to node 1 is on
// its way. Node 2 is restarted empty, so it forgets the contender; the holder's renewal restores there. Then the
// holder's key on node 1 runs out, and the contender's request arrives.
func TestRestoreInQuarantineIsNoVoteForWhoHadNone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		start := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))); synctest.Wait() }
		holder, cable := bareMajority(t, cl, quorum.Config{})

		way := &faultnet.Cable{}
		other := cl.clientOn(way, quorum.Config{NodeTimeout: 5 * time.Second})
		if err := other.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The contender's token is node 2's, so that it need not ask there once more, and find out.
		ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
		if err := cl.nodes[2].Redis().Set(script.FenceKey("stock"), ahead); err != nil {
			t.Fatal(err)
		}
		cable.Cut(cl.nodes[1])
		at(27 * time.Second)
		way.Hold(cl.nodes[1])
		var contender *quorum.Lease
		var wg sync.WaitGroup
		wg.Go(func() { contender, _ = other.TryAcquire(t.Context(), "stock") })
		at(27*time.Second + 500*time.Millisecond)
		if who := cl.holders("stock"); who[2] == "" {
			t.Fatalf("held on %q: the contender was not granted node 2, and the test shows nothing", who)
		}
		cl.nodes[2].Restart()
		cable.Mend(cl.nodes[2])
		for time.Since(start) < 29*time.Second {
			_ = holder.Renew(t.Context()) // the node is in quarantine by then
			time.Sleep(10 * time.Millisecond)
		}
		if who := cl.holders("stock"); who[2] != holder.Holder() {
			t.Fatalf("held on %q: the holder was not restored on node 2, and the test shows nothing", who)
		}
		at(30*time.Second + 100*time.Millisecond)
		way.Mend(cl.nodes[1])
		wg.Wait()
		if contender == nil {
			t.Fatal("the contender got nothing, and the test shows nothing")
		}
		if holder.Err() == nil {
			t.Fatal("two holders")
		}
		mustRelease(t, contender)
	})
}

// Somebody used a TTL that is longer than everybody else's. A node that forgot it would vote too early.
func TestQuarantineLastsAsLongAsTheLongestTTLInUse(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cable := &faultnet.Cable{}
		cable.Cut(cl.nodes[2])
		c := cl.clientOn(cable, quorum.Config{})
		mustRelease(t, mustAcquire(t, c, t.Context(), "warm")) // nobody knew of ten minutes when the nodes were checked
		l := mustAcquire(t, c, t.Context(), "stock", quorum.WithLeaseTime(10*time.Minute))
		cable.Cut(cl.nodes[0])
		cable.Cut(cl.nodes[1])
		cl.nodes[1].Restart()
		cl.distant()
		for range 13 {
			stillOne(t, cl.client(quorum.Config{}), l)
			time.Sleep(time.Minute)
		}
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
	})
}

// The holder of a long lease cannot be reached, nor can the only node that knows of it and has not forgotten. Nobody can
// tell how long a quarantine has to be, except whoever was told before.
func TestGuardTimeIsAtLeastWhatWasConfigured(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, cable := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(10*time.Minute))
		cable.Cut(cl.nodes[0])
		cable.Cut(cl.nodes[1])
		cl.nodes[0].Kill()
		cl.nodes[1].Restart()
		for l.Err() == nil {
			stillOne(t, cl.client(quorum.Config{GuardTime: 10 * time.Minute}), l)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(ttl)
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
	})
}

// A second restart in quarantine begins it anew, and nothing ends it early.
func TestQuarantineIsNeverShortened(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l, _ := bareMajority(t, cl, quorum.Config{}, quorum.WithLeaseTime(ttl))
		long := cl.client(quorum.Config{})
		mustRelease(t, mustAcquire(t, long, t.Context(), "other", quorum.WithLeaseTime(time.Hour)))
		cl.nodes[1].Restart()
		stillOne(t, long, l)
		for range 20 { // clients with shorter ones come and go
			stillOne(t, cl.client(quorum.Config{TTL: time.Second}), l)
			time.Sleep(time.Second)
		}
		cl.nodes[1].Restart()
		time.Sleep(59 * time.Minute)
		_, err := cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock", quorum.WithLeaseTime(time.Second))
		if err != nil {
			t.Fatal(err) // nodes 0 and 2
		}
		_, err = cl.client(quorum.Config{}).TryAcquire(t.Context(), "stock")
		wantIs(t, err, quorum.ErrQuarantined)
	})
}

// A rolling restart of all nodes leaves quarantine behind on all of them, and no lease is lost.
func TestLeaseIsHealedOnNodesInQuarantine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		for range 3 {
			for _, n := range cl.nodes {
				n.Restart()
				cl.eventually(ttl/3+3*time.Second, "healed", func() bool { return cl.present("stock") == 3 })
			}
		}
		time.Sleep(3 * ttl)
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
	})
}

func TestWithoutTheGuardNodesVoteAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Redis().FlushAll()
		}
		c := cl.client(quorum.Config{NoRestartGuard: true})
		l := mustAcquire(t, c, t.Context(), "stock")
		cl.nodes[0].Restart()
		cl.nodes[1].Restart()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{NoRestartGuard: true}), t.Context(), "other"))
		_ = l.Release(t.Context()) // its connections are broken
		for _, n := range cl.nodes {
			if n.Redis().Exists(script.RecordKey) {
				t.Error("a node has a record")
			}
		}
	})
}

func TestClientsThatDisagreeOnTheNumberOfNodesAreWarned(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		three := &cluster{t: t, clock: cl.clock, nodes: cl.nodes[:3], log: &journal{}}
		mustRelease(t, mustAcquire(t, three.client(quorum.Config{}), t.Context(), "stock"))
		synctest.Wait() // it had the lock when two nodes had answered
		if log := three.log.String(); !contains(log, "different numbers of nodes", "ours=3", "theirs=5", "node=a.test:6379") {
			t.Errorf("logged %q", log)
		}
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		synctest.Wait()
		if log := cl.log.String(); !contains(log, "different numbers of nodes", "ours=5", "theirs=3") {
			t.Errorf("logged %q", log)
		}
	})
}

// Whoever runs the nodes is told of one that forgot, and of no other.
func TestNodeThatIsKeptFromVotingIsReported(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		if log := cl.log.String(); contains(log, "was restarted") {
			t.Errorf("nothing was restarted, and logged %q", log)
		}
		cl.nodes[1].Restart()
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock"))
		synctest.Wait()
		if log := cl.log.String(); !contains(log, "was restarted", "node=b.test:6379", "for=30s") || contains(log, "node=a.test:6379 for") {
			t.Errorf("logged %q", log)
		}
	})
}

// A node that comes back empty again and again is told of each time, and nothing is kept of it.
func TestWarningsDoNotPileUp(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		for _, n := range cl.nodes {
			n.LoseRequests(true) // nothing is found but what is said here
		}
		const restarts = 100
		for i := range restarts {
			for range 2 {
				quorum.Checked(c, 0, script.Record{
					Standing: script.StandingSettled, Incarnation: strconv.Itoa(i), Quarantine: ttl, TTL: ttl, Now: cl.clock.Wall().UnixMicro(),
				})
			}
		}
		if told := strings.Count(cl.log.String(), "was restarted"); told != restarts {
			t.Errorf("told %d times of %d restarts", told, restarts)
		}
		if n := quorum.WarningsOf(c); n > 10 {
			t.Errorf("remembers %d warnings", n)
		}
	})
}

// A check that found no two alike any more is overtaken by two that do. Whatever the order in which they come to their end, the
// last that was compared is right: were it forgotten, nothing would look again.
func TestOneServerUnderTwoAddressesIsNotForgottenForAnOlderCheck(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		overtaken := &interrupted{Clock: cl.clock, in: "(*Coordinator).rests"}
		cl.clock = overtaken
		c := cl.client(quorum.Config{})
		for _, n := range cl.nodes {
			n.LoseRequests(true) // nothing is found but what is said here
		}
		found := func(i int, run string) {
			quorum.Checked(c, i, script.Record{Standing: script.StandingSettled, Run: run, Now: cl.clock.Wall().UnixMicro()})
		}
		alike := func() {
			found(2, "second")
			found(1, "second") // it is asked again before it counts
		}
		found(0, "first")
		found(1, "second")
		alike()
		if !quorum.SameServer(c) {
			t.Fatal("the test shows nothing: two are one server, and nobody says so")
		}
		synctest.Wait()
		overtaken.by = func() {
			overtaken.by = nil // alike asks the clock, too
			alike()
		}
		found(2, "third")
		if !quorum.SameServer(c) {
			t.Error("what the older check found is believed")
		}
		if log := strings.Split(strings.TrimSpace(cl.log.String()), "\n"); !strings.Contains(log[len(log)-1], "two addresses are one server") {
			t.Errorf("the last word of the log: %s", log[len(log)-1])
		}
		found(2, "third")
		if quorum.SameServer(c) {
			t.Error("it is mended, and nobody says so")
		}
	})
}

// Likewise, an older check does not make a node look well that a later one found in quarantine.
func TestQuarantineIsNotForgottenForAnOlderCheck(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		overtaken := &interrupted{Clock: cl.clock, in: "(*Coordinator).rests"}
		cl.clock = overtaken
		c := cl.client(quorum.Config{})
		for _, n := range cl.nodes {
			n.LoseRequests(true)
		}
		found := func(incarnation string, quarantine time.Duration) {
			quorum.Checked(c, 0, script.Record{
				Standing: script.StandingSettled, Incarnation: incarnation, Quarantine: quarantine, TTL: ttl, Now: cl.clock.Wall().UnixMicro(),
			})
		}
		overtaken.by = func() {
			overtaken.by = nil
			found("second", ttl)
		}
		found("first", 0)
		synctest.Wait()
		if is := c.Stats().Nodes[0].Condition; is != quorum.NodeQuarantined {
			t.Errorf("the node is %v, and the log says %s", is, cl.log)
		}
		found("second", 0)
		if is := c.Stats().Nodes[0].Condition; is != quorum.NodeAnswering {
			t.Errorf("after its quarantine the node is %v", is)
		}
	})
}
