package quorum_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// conditions are how a coordinator finds its nodes.
func conditions(c *quorum.Coordinator) string {
	var all []string
	for _, n := range c.Stats().Nodes {
		all = append(all, n.Condition.String())
	}
	return strings.Join(all, " ")
}

// cycle takes a lock and gives it back, and waits until all nodes have answered.
func cycle(t *testing.T, c *quorum.Coordinator) {
	t.Helper()
	mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// count is how often the log says something.
func (cl *cluster) count(text string) int { return strings.Count(cl.log.String(), text) }

// However many requests to a node go unanswered, and for however long: one line when that begins, one when it is over.
func TestSilentNodeIsReportedOnceAndItsReturnToo(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		tr := &told{}
		c := cl.client(quorum.Config{Tracer: tr})
		if got := conditions(c); got != "untried untried untried" {
			t.Errorf("before the first request the nodes are %s", got)
		}
		cycle(t, c)
		if got := conditions(c); got != "answering answering answering" {
			t.Errorf("the nodes are %s", got)
		}
		if s := c.Stats(); s.Quorum != 2 || s.Nodes[0].Err != nil || s.Nodes[2].Node != "c.test:6379" {
			t.Errorf("stats are %+v", s)
		}
		tr.take()
		cl.nodes[1].LoseRequests(true)
		for range 5 {
			cycle(t, c)
		}
		if got := conditions(c); got != "answering silent answering" {
			t.Errorf("the nodes are %s", got)
		}
		if err := c.Stats().Nodes[1].Err; !errors.Is(err, node.ErrTimeout) {
			t.Errorf("the silent node's error is %v", err)
		}
		if n := cl.count(`level=WARN msg="a node does not answer" node=b.test:6379 error=`); n != 1 || cl.count("does not answer") != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
		cl.nodes[1].LoseRequests(false)
		for range 5 {
			cycle(t, c)
		}
		if got := conditions(c); got != "answering answering answering" {
			t.Errorf("the nodes are %s", got)
		}
		if n := cl.count(`level=INFO msg="a node answers again" node=b.test:6379`); n != 1 || cl.count("answers again") != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
		wantTold(t, tr.take("try-acquire", "attempt", "hold", "release"),
			"node b.test:6379 answering > silent", "node b.test:6379 silent > answering")
	})
}

// A node that answers every other second would else write a diary.
func TestNodeThatComesAndGoesIsReportedNowAndThen(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		for range 30 { // 4 s each
			cl.nodes[1].LoseRequests(true)
			cycle(t, c)
			cl.nodes[1].LoseRequests(false)
			cycle(t, c)
		}
		if n := cl.count("does not answer"); n < 5 || n > 12 || cl.count("answers again") != n {
			t.Errorf("in two minutes it is reported %d times, and %d times that it is back", n, cl.count("answers again"))
		}
	})
}

// One request of many that gets lost does not make a node silent: what was asked later has been answered.
func TestOneLostAnswerAmongOthersIsNoSilence(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		cl.nodes[1].Delay(time.Millisecond)
		cl.nodes[1].LoseReplies(true)
		l := mustAcquire(t, c, t.Context(), "lost") // two votes are enough
		time.Sleep(2 * time.Millisecond)
		cl.nodes[1].LoseReplies(false)
		mustRelease(t, mustAcquire(t, c, t.Context(), "stock"))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := conditions(c); got != "answering answering answering" || cl.count("does not answer") > 0 {
			t.Errorf("the nodes are %s, and logged was\n%s", got, cl.log)
		}
		mustRelease(t, l)
	})
}

// Answers come by many ways. One that was overtaken by a failure is older than that, and tells nothing of the node now.
func TestAnswerThatIsOlderThanTheSilenceDoesNotEndIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		time.Sleep(time.Minute)
		gone := &node.Error{Node: "b.test:6379", Err: node.ErrTimeout}
		quorum.Heard(c, 1, gone, time.Second)
		quorum.Heard(c, 1, nil, 2*time.Second)
		if got := conditions(c); got != "answering silent answering" {
			t.Errorf("the nodes are %s", got)
		}
		quorum.Heard(c, 1, nil, 0)
		if got := conditions(c); got != "answering answering answering" {
			t.Errorf("the nodes are %s", got)
		}
	})
}

func TestNodeThatRefusesIsReportedOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		cl.nodes[2].Redis().SetError("LOADING Redis is loading the dataset in memory")
		for range 3 {
			cycle(t, c)
		}
		if got := conditions(c); got != "answering answering refusing" {
			t.Errorf("the nodes are %s", got)
		}
		if err := c.Stats().Nodes[2].Err; err == nil || !contains(err.Error(), "LOADING") {
			t.Errorf("its error is %v", err)
		}
		if n := cl.count(`level=WARN msg="a node refuses requests" node=c.test:6379 error=`); n != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
		cl.nodes[2].Redis().SetError("")
		cycle(t, c)
		if got := conditions(c); got != "answering answering answering" || cl.count("answers again") != 1 {
			t.Errorf("the nodes are %s, and logged was\n%s", got, cl.log)
		}
	})
}

func TestQuarantineIsACondition(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		cl.nodes[1].Restart()
		cycle(t, c)
		cycle(t, c)
		if got := conditions(c); got != "answering quarantined answering" {
			t.Errorf("the nodes are %s", got)
		}
		if left := c.Stats().Nodes[1].Left; left <= ttl/2 || left > ttl {
			t.Errorf("its quarantine lasts %v more", left)
		}
		time.Sleep(ttl)
		if got := conditions(c); got != "answering answering answering" {
			t.Errorf("the quarantine is over, and the nodes are %s", got)
		}
		cycle(t, c)
		if n := cl.count(`level=INFO msg="a node's votes count again" node=b.test:6379`); n != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
	})
}

func TestClockThatRanOffIsACondition(t *testing.T) {
	withClocks(t, func(t *testing.T, w *clocks) {
		c := w.openWith(1, quorum.Config{NoRestartGuard: true}) // whose checks would come upon it as well
		cycle(t, c)
		w.Node(2).Skew(1, ttl)
		cycle(t, c)
		cycle(t, c)
		if got := conditions(c); got != "answering answering clock-off" {
			t.Errorf("the nodes are %s", got)
		}
		if left := c.Stats().Nodes[2].Left; left <= 0 || left > ttl {
			t.Errorf("its votes do not count for another %v", left)
		}
		time.Sleep(ttl)
		cycle(t, c)
		if got := conditions(c); got != "answering answering answering" || !contains(w.log.String(), `msg="a node's votes count again"`) {
			t.Errorf("the nodes are %s, and logged was\n%s", got, w.log)
		}
	})
}

func TestLackOfAQuorumIsReportedOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		cl.nodes[0].LoseRequests(true)
		cycle(t, c)
		if n := cl.count("too few nodes"); n != 0 {
			t.Errorf("two nodes are left, and logged was\n%s", cl.log)
		}
		cl.nodes[1].LoseRequests(true)
		for range 3 {
			_, err := c.TryAcquire(t.Context(), "stock")
			wantIs(t, err, quorum.ErrNoQuorum)
			time.Sleep(ttl)
		}
		if n := cl.count(`level=ERROR msg="too few nodes are left whose votes count: no lock can be taken" nodes=1 need=2`); n != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
		cl.nodes[0].LoseRequests(false)
		for range 3 {
			cycle(t, c)
		}
		if n := cl.count("locks can be taken again"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
		cl.nodes[1].LoseRequests(false)
	})
}

// An outage makes the renewals of every lease fail, again and again.
func TestFailingRenewalsAreReportedOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c, tr := cl.traced(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		synctest.Wait()
		for _, n := range cl.nodes {
			n.LoseRequests(true)
		}
		time.Sleep(ttl/3 + 5*time.Second)
		for _, n := range cl.nodes {
			n.LoseRequests(false)
		}
		time.Sleep(ttl / 3)
		synctest.Wait()
		missed := 0
		for _, line := range tr.take() {
			if strings.HasPrefix(line, "renewal") && strings.Contains(line, "no quorum") {
				missed++
			}
		}
		if missed < 2 {
			t.Fatalf("%d renewals failed: the test shows nothing", missed)
		}
		if n := cl.count(`level=WARN msg="renewal failed" name=stock`); n != 1 || cl.count(`level=INFO msg="renewed again" name=stock`) != 1 {
			t.Errorf("logged %d times:\n%s", n, cl.log)
		}
		mustRelease(t, l)
	})
}

func TestStatsCountWhatIsHeld(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		a := mustAcquire(t, c, t.Context(), "a")
		mustAcquire(t, c, a.Context(t.Context()), "a")
		mustAcquire(t, c, t.Context(), "b")
		if n := c.Stats().Held; n != 2 {
			t.Errorf("%d held, want 2", n)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Held != 0 || s.Waiting != 0 || len(s.Nodes) != 3 {
			t.Errorf("after Close: %+v", s)
		}
	})
}
