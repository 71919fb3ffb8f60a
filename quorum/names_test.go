package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// someone is a holder.
const someone = "01234567-89ab-cdef-0123-456789abcdef:1"

// put gives nodes a lock.
func (cl *cluster) put(name string, nodes ...int) {
	for _, i := range nodes {
		cl.nodes[i].Redis().HSet(name, someone, "1")
	}
}

func wantNames(t *testing.T, l quorum.Listing, want ...string) {
	t.Helper()
	if !slices.Equal(l.Names, want) || l.Cut {
		t.Errorf("found %q, cut %v; want %q", l.Names, l.Cut, want)
	}
}

// A name is found if any node has it: a lock that only one has yet is one that somebody may look for.
func TestNamesAreThoseOfAnyNode(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		held := mustAcquire(t, c, t.Context(), "stock")
		synctest.Wait()
		cl.put("stock room", 1)
		cl.put("flour", 0, 2)
		l, err := c.Names(t.Context(), "*", 10)
		if err != nil {
			t.Fatal(err)
		}
		wantNames(t, l, "flour", "stock", "stock room")
		l, err = c.Names(t.Context(), "stock*", 2)
		if err != nil {
			t.Fatal(err)
		}
		wantNames(t, l, "stock", "stock room")
		for i, n := range l.Nodes {
			if n.Node != cl.nodes[i].Addr() || !n.Whole || n.Err != nil {
				t.Errorf("node %d: %+v", i, n)
			}
		}
		mustRelease(t, held)
		if l, err = c.Names(t.Context(), "stock", 10); err != nil {
			t.Fatal(err)
		}
		wantNames(t, l)
		for _, n := range cl.nodes {
			n.Redis().Del("stock room")
			n.Redis().Del("flour")
		}
	})
}

func TestNamesAreCutAtTheLimitAndSayIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		const names = 30
		for i := range names {
			cl.put(fmt.Sprint("lock ", i), i%3)
			defer cl.nodes[i%3].Redis().Del(fmt.Sprint("lock ", i))
		}
		for limit, cut := range map[int]bool{1: true, names - 1: true, names: false, names + 1: false} {
			l, err := c.Names(t.Context(), "*", limit)
			if err != nil || len(l.Names) != min(limit, names) || l.Cut != cut {
				t.Errorf("limit %d: %d names, cut %v, %v", limit, len(l.Names), l.Cut, err)
			}
		}
	})
}

// One node less is no reason to fail, two of three are; what is known is told all the same.
func TestNamesNeedAQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		cl.put("stock", 2)
		defer cl.nodes[2].Redis().Del("stock")
		cl.nodes[0].Kill()
		l, err := c.Names(t.Context(), "*", 10)
		if err != nil || l.Nodes[0].Err == nil || l.Nodes[0].Whole {
			t.Errorf("%v: %+v", err, l)
		}
		wantNames(t, l, "stock")
		cl.nodes[1].Hold()
		begun := time.Now()
		l, err = c.Names(t.Context(), "*", 10)
		wantIs(t, err, quorum.ErrNoQuorum)
		wantNames(t, l, "stock")
		var votes *quorum.QuorumError
		if !errors.As(err, &votes) || votes.Op != "names" || votes.Got != 1 || votes.Need != 2 || votes.Votes[1].Err == nil {
			t.Errorf("%+v", votes)
		}
		if took := time.Since(begun); took != 500*time.Millisecond {
			t.Errorf("it took %v, and a node timeout is 500ms", took)
		}
		cl.nodes[1].Resume()
	})
}

// The context bounds it, and a quorum that is missing is told besides.
func TestNamesEndWithTheirContext(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		cl.put("stock", 0)
		defer cl.nodes[0].Redis().Del("stock")
		over, end := context.WithCancel(t.Context())
		end()
		if _, err := c.Names(over, "*", 10); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		for held := range 3 {
			cl.nodes[held].Hold()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			l, err := c.Names(ctx, "*", 10)
			cancel()
			wantIs(t, err, context.DeadlineExceeded)
			wantIsNot(t, err, quorum.ErrNotAcquired)
			wantIsNot(t, err, quorum.ErrNoQuorum) // nobody's node timeout was up
			if l.Nodes[held].Whole || l.Nodes[held].Err != nil {
				t.Errorf("%+v", l.Nodes[held])
			}
		}
		for _, n := range cl.nodes {
			n.Resume()
		}
	})
}

func TestNamesAfterCloseAreRefused(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := c.Names(t.Context(), "*", 10)
		wantIs(t, err, quorum.ErrClosed)
	})
}

// Close does not wait until all keys have been looked at.
func TestCloseEndsASearchForNames(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{NodeTimeout: 2 * time.Second})
		for _, n := range cl.nodes {
			n.Delay(100 * time.Millisecond)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Names(t.Context(), "*", 10)
			ended <- err
		}()
		time.Sleep(50 * time.Millisecond) // its first request is on the way
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantIs(t, <-ended, quorum.ErrClosed)
	})
}

// Behind a prefix only its own names are found, and told without it.
func TestNamesBehindAPrefix(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{Prefix: "shop:"})
		held := mustAcquire(t, c, t.Context(), "stock")
		synctest.Wait()
		cl.put("stock", 0, 1, 2)
		cl.put("workshop:stock", 0, 1, 2)
		l, err := c.Names(t.Context(), "*", 10)
		if err != nil {
			t.Fatal(err)
		}
		wantNames(t, l, "stock")
		states, err := c.InspectAll(t.Context(), l.Names)
		if err != nil || len(states) != 1 || states[0].Name != "stock" || states[0].Holder != held.Holder() {
			t.Errorf("got %+v, %v, want the lock of %s", states, err, held.Holder())
		}
		mustRelease(t, held)
	})
}
