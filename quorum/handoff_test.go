package quorum_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// away is how far the nodes are from the client in these tests: far enough to see whether they were asked.
const away = time.Millisecond

// A relay is one process whose goroutines want the same lock, one after the other.
type relay struct {
	*cluster
	c     *quorum.Coordinator
	first *quorum.Lease   // had without a wait, so there is one token
	next  chan legOfRelay // leases, in the order in which they were had
	wg    sync.WaitGroup
}

type legOfRelay struct {
	i     int
	lease *quorum.Lease
	err   error
}

// relay has the lock, and lets n goroutines wait for it.
func (cl *cluster) relay(cfg quorum.Config, n int, opts ...quorum.Option) *relay {
	cl.t.Helper()
	r := &relay{cluster: cl, c: cl.warmClient(cfg), next: make(chan legOfRelay, n+10)}
	for _, n := range cl.nodes {
		n.Delay(away)
	}
	r.first = mustWait(cl.t, r.c, "stock", opts...)
	for i := range n {
		r.wait(cl.t.Context(), i, opts...)
	}
	return r
}

// wait puts one more in the line.
func (r *relay) wait(ctx context.Context, i int, opts ...quorum.Option) {
	r.wg.Go(func() {
		l, err := r.c.Acquire(ctx, "stock", opts...)
		r.next <- legOfRelay{i, l, err}
	})
	synctest.Wait()
}

// leg gives a lease back and returns the next one, and how many commands that took.
func (r *relay) leg(l *quorum.Lease) (*quorum.Lease, int) {
	r.t.Helper()
	synctest.Wait()
	before := r.requests()
	mustRelease(r.t, l)
	leg := <-r.next
	if leg.err != nil {
		r.t.Fatal(leg.err)
	}
	return leg.lease, r.requests() - before
}

// end gives a lease back when nobody is left in the line.
func (r *relay) end(l *quorum.Lease) {
	r.t.Helper()
	mustRelease(r.t, l)
	r.wg.Wait()
	r.eventually(time.Second, "nothing is left", func() bool { return r.present("stock") == 0 })
}

// wantNew checks that a lease was had from the nodes, and not from the one who had it before.
func (r *relay) wantNew(l *quorum.Lease) (next *quorum.Lease) {
	r.t.Helper()
	next, n := r.leg(l)
	if next.Holder() == l.Holder() || n == 0 {
		r.t.Errorf("it was handed on, with %d commands", n)
	}
	if next.Token() <= l.Token() {
		r.t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	return next
}

// wantHandedOn checks that a lease was had from the one who had it before.
func (r *relay) wantHandedOn(l *quorum.Lease) (next *quorum.Lease) {
	r.t.Helper()
	next, n := r.leg(l)
	if next.Holder() != l.Holder() || n > len(r.nodes) { // the last one to leave the line unsubscribes
		r.t.Errorf("it was not handed on, with %d commands", n)
	}
	if next.Token() != l.Token()+1 {
		r.t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	wantIs(r.t, l.Err(), quorum.ErrReleased)
	wantIs(r.t, l.Release(context.Background()), quorum.ErrReleased)
	if n := l.HoldCount(); n != 0 {
		r.t.Errorf("hold count %d of a hold that was handed on", n)
	}
	if next.Err() != nil || next.HoldCount() != 1 {
		r.t.Errorf("%v, hold count %d", next.Err(), next.HoldCount())
	}
	return next
}

// Of those who wait in a process the first one asks the nodes, for all who stand in the line then; the others are handed the
// hold, at once and in order, and the last gives it back to the nodes.
func TestHoldIsHandedOnWithinTheProcess(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 4)
		l := r.wantNew(r.first)
		start := time.Now()
		for range 3 {
			l = r.wantHandedOn(l)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("handing on took %v", took)
		}
		r.end(l)
		// Whoever is next, wherever, has a greater token than all of them.
		next := mustWait(t, cl.client(quorum.Config{}), "stock")
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		mustRelease(t, next)
	})
}

// Those who came after the tokens were granted have none: the hold goes back to the nodes.
func TestHoldIsHandedOnAsOftenAsThereAreTokens(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 2)
		l := r.wantNew(r.first)
		r.wait(t.Context(), 9)
		l = r.wantHandedOn(l)
		r.end(r.wantNew(l))
	})
}

// Every node stores the tokens of all who may have the hold, or a later holder could have one of theirs.
func TestTokensOfAHandOffAreStoredBeforeTheyAreUsed(t *testing.T) {
	for title, cut := range map[string][]int{"all nodes": nil, "a bare majority": {0}} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				r := cl.relay(quorum.Config{}, 5)
				for _, i := range cut {
					cl.nodes[i].Kill()
				}
				l := r.wantNew(r.first)
				for range 4 {
					l = r.wantHandedOn(l)
				}
				// It dies now, as far as anybody can tell, and the nodes know nothing of what it did with the hold. The
				// next one's clock is behind, so what counts is what they stored.
				stored := 0
				for i := range cl.nodes {
					if cl.fence(i, "stock") >= strconv.FormatInt(l.Token(), 10) {
						stored++
					}
				}
				if stored < 2 {
					t.Errorf("token %d, and the fences are %s, %s, %s", l.Token(), cl.fence(0, "stock"), cl.fence(1, "stock"), cl.fence(2, "stock"))
				}
				for _, i := range cut {
					cl.nodes[i].Start(true)
				}
				r.end(l)
			})
		})
	}
}

// A process does not keep a lock among its own for longer than a turn: others may wait for it.
func TestHoldIsHandedOnForNoLongerThanATurn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 3)
		l := r.wantNew(r.first)
		time.Sleep(40 * time.Millisecond)
		l = r.wantHandedOn(l)
		time.Sleep(20 * time.Millisecond)
		r.end(r.wantNew(l))
	})
}

// Two processes with a crowd in each: neither keeps the lock from the other.
func TestHandOffKeepsNoLockFromAnotherProcess(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Delay(away)
		}
		start := time.Now()
		var mu sync.Mutex
		last := [2]time.Duration{}
		var wg sync.WaitGroup
		for p := range last {
			c := cl.client(quorum.Config{})
			for range 10 {
				wg.Go(func() {
					for time.Since(start) < 5*time.Second {
						l := mustWait(t, c, "stock")
						time.Sleep(time.Millisecond)
						mu.Lock()
						if now := time.Since(start); now > last[p]+time.Second {
							t.Errorf("process %d had nothing from %v to %v", p, last[p], now)
						}
						last[p] = time.Since(start)
						mu.Unlock()
						mustRelease(t, l)
					}
				})
			}
		}
		wg.Wait()
	})
}

// What is left of the lease is what the next one gets. It gets nothing that is about to end, and nothing that has ended.
func TestHoldThatIsAboutToEndIsNotHandedOn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		const short = 200 * time.Millisecond
		r := cl.relay(quorum.Config{TTL: short, NodeTimeout: 20 * time.Millisecond}, 3)
		l := r.wantNew(r.first)
		for _, n := range cl.nodes {
			n.Kill() // nothing renews it
		}
		time.Sleep(38 * time.Millisecond)
		l = r.wantHandedOn(l)
		time.Sleep(8 * time.Millisecond) // a turn is not over
		if left := l.Remaining(); left <= 0 || left >= short/2 {
			t.Fatalf("%v are left, and the test shows nothing", left)
		}
		_ = l.Release(t.Context())
		cl.never(short, "handed on", func() bool { return len(r.next) > 0 })
		for _, n := range cl.nodes {
			n.Start(true)
		}
		leg := <-r.next
		if leg.err != nil || leg.lease.Holder() == l.Holder() {
			t.Errorf("%v, %v", leg.lease, leg.err)
		}
		r.end(leg.lease)
	})
}

// The watchdog renews what was handed on, with all its tokens.
func TestHoldThatWasHandedOnIsRenewed(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		r := cl.relay(quorum.Config{}, 3)
		l := r.wantHandedOn(r.wantNew(r.first))
		cl.nodes[0].Redis().FlushAll() // and with it the fence
		time.Sleep(2 * ttl)
		if l.Err() != nil || cl.present("stock") != 3 {
			t.Errorf("%v, on %d nodes", l.Err(), cl.present("stock"))
		}
		if fence := cl.fence(0, "stock"); fence < strconv.FormatInt(l.Token()+1, 10) {
			t.Errorf("fence %s, and %d may be used", fence, l.Token()+1)
		}
		r.end(r.wantNew(l))
	})
}

// Tokens are asked for only for those who can be handed the hold.
func TestTokensAreAskedForOnlyForThoseWhoMayUseThem(t *testing.T) {
	long := quorum.WithLeaseTime(ttl)
	for title, c := range map[string]struct {
		cfg         quorum.Config
		mine, their []quorum.Option
	}{
		"it has a lease time":      {mine: []quorum.Option{long}},
		"they want a lease time":   {their: []quorum.Option{long}},
		"it has a greatest length": {cfg: quorum.Config{MaxHold: time.Hour}},
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				r := cl.relay(c.cfg, 1, c.mine...)
				for i := range 5 {
					r.wait(t.Context(), 1+i, c.their...)
				}
				l := r.wantNew(r.first)
				cl.eventually(time.Second, "every fence is the token, and no more", func() bool {
					token := strconv.FormatInt(l.Token(), 10)
					return cl.fence(0, "stock") == token && cl.fence(1, "stock") == token && cl.fence(2, "stock") == token
				})
				for range 5 {
					mustRelease(t, l)
					l = (<-r.next).lease
				}
				r.end(l)
			})
		})
	}
}

// A process that handed a lock on among its own does not take it again before others had a chance, however short that was.
func TestOthersHaveAChanceAfterAHandOff(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		cl.bystanders("stock", 100)
		r := &relay{cluster: cl, c: cl.client(quorum.Config{}), next: make(chan legOfRelay, 10)}
		quorum.Fix(r.c, "polite", func() float64 { return 0.999 }) // the last moment of all
		theirs := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		for i := range 3 {
			r.wait(t.Context(), i)
		}
		time.Sleep(time.Second)
		mustRelease(t, theirs)
		l := r.wantHandedOn(r.wantHandedOn((<-r.next).lease))
		r.wait(t.Context(), 9)
		start := time.Now()
		r.end(r.wantNew(l))
		if took := time.Since(start); took < 50*time.Millisecond {
			t.Errorf("it had it again after %v, with a hundred others", took)
		}
	})
}

// A hold that ends at a moment of its own is not handed on, nor is one to somebody who wants another one.
func TestHoldIsHandedOnOnlyToWhoWantsTheSame(t *testing.T) {
	long := quorum.WithLeaseTime(ttl)
	for title, c := range map[string]struct {
		cfg         quorum.Config
		mine, their []quorum.Option
	}{
		"it has a lease time":      {mine: []quorum.Option{long}},
		"they want a lease time":   {their: []quorum.Option{long}},
		"both have a lease time":   {mine: []quorum.Option{long}, their: []quorum.Option{long}},
		"it has a greatest length": {cfg: quorum.Config{MaxHold: time.Hour}},
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				r := cl.relay(c.cfg, 1, c.mine...)
				r.wait(t.Context(), 1, c.their...)
				r.end(r.wantNew(r.wantNew(r.first)))
			})
		})
	}
}

// In whatever order the goroutines of a process run, one of them has the lock at a time, tokens grow, and nobody waits for
// ever.
func TestHandOffKeepsOrderAmongMany(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		for _, n := range cl.nodes {
			n.Delay(away)
		}
		var tokens []int64 // guarded by the lock
		inside := 0
		var wg sync.WaitGroup
		for i := range 128 {
			wg.Go(func() {
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond+50*time.Microsecond)
					if i%7 > 3 {
						ctx = t.Context()
					}
					l, err := c.Acquire(ctx, "stock")
					cancel()
					if err != nil {
						continue
					}
					if inside++; inside > 1 {
						t.Error("two inside")
					}
					tokens = append(tokens, l.Token())
					if i%3 == 0 {
						time.Sleep(time.Duration(i) * time.Microsecond)
					}
					inside--
					mustRelease(t, l)
				}
			})
		}
		wg.Wait()
		if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != len(tokens) || len(tokens) < 200 {
			t.Errorf("%d tokens: %v", len(tokens), tokens)
		}
		cl.eventually(time.Second, "nothing is left", func() bool { return cl.present("stock") == 0 })
	})
}
