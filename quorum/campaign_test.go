package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/quorum"
)

// office is what leaders do: they note that they came and went, and an opponent sees to it that no two believe in their
// terms at once.
type office struct {
	t *testing.T

	mu      sync.Mutex
	leaders map[*quorum.Lease]bool // that have not left
	tokens  []int64
}

// enter notes that a term began.
func (o *office) enter(term *quorum.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other := range o.leaders {
		if other.Err() == nil {
			o.t.Errorf("token %d came while the leader with token %d believes in its term", term.Token(), other.Token())
		}
	}
	if n := len(o.tokens); n > 0 && o.tokens[n-1] >= term.Token() {
		o.t.Errorf("token %d after %v", term.Token(), o.tokens)
	}
	if o.leaders == nil {
		o.leaders = map[*quorum.Lease]bool{}
	}
	o.leaders[term] = true
	o.tokens = append(o.tokens, term.Token())
}

func (o *office) leave(term *quorum.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.leaders, term)
}

// terms is how many there were.
func (o *office) terms() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tokens)
}

// sitting is who leads, by what it believes itself; nil if nobody does.
func (o *office) sitting() *quorum.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leaders {
		if l.Err() == nil {
			return l
		}
	}
	return nil
}

// untilLost leads until its context ends.
func (o *office) untilLost(ctx context.Context, term *quorum.Lease) error {
	o.enter(term)
	defer o.leave(term)
	<-ctx.Done()
	return context.Cause(ctx)
}

// campaign is a Campaign on a goroutine of its own.
type campaign struct {
	cancel context.CancelCauseFunc
	over   chan struct{}
	err    error
}

func campaigning(t *testing.T, c *quorum.Coordinator, lead func(context.Context, *quorum.Lease) error, opts ...quorum.Option) *campaign {
	ctx, cancel := context.WithCancelCause(context.Background())
	k := &campaign{cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(k.over)
		k.err = c.Campaign(ctx, "chair", lead, opts...)
	}()
	t.Cleanup(func() { _ = k.end(nil) })
	return k
}

// end ends the campaign's context and returns what it came to.
func (k *campaign) end(cause error) error {
	k.cancel(cause)
	<-k.over
	return k.err
}

func TestLostTermIsFollowedByAnother(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		var o office
		o.t = t
		k := campaigning(t, cl.client(quorum.Config{}), func(ctx context.Context, term *quorum.Lease) error {
			o.enter(term)
			defer o.leave(term)
			<-ctx.Done()
			if want := []error{context.Canceled, quorum.ErrLost}[min(1, 5-o.terms())]; !errors.Is(context.Cause(ctx), want) {
				t.Errorf("the context ended with %v", context.Cause(ctx))
			}
			return []error{nil, errors.New("connection closed"), ctx.Err()}[o.terms()%3] // it does not matter what
		})
		operator := cl.client(quorum.Config{})
		for n := 1; n < 5; n++ {
			cl.eventually(ttl, "a leader", func() bool { return o.terms() == n && o.sitting() != nil })
			synctest.Wait()
			if held, err := operator.ForceRelease(t.Context(), "chair"); err != nil || !held {
				t.Fatal(held, err)
			}
		}
		cl.eventually(ttl, "a leader", func() bool { return o.terms() == 5 && o.sitting() != nil })
		if !contains(cl.log.String(), "leadership lost", "connection closed") {
			t.Errorf("log: %s", cl.log)
		}
		wantIs(t, k.end(nil), context.Canceled) // which is what the last of them returned
	})
}

// While it led, what a leader returns is what becomes of the campaign. The seat is free at once.
func TestReturnOfALeaderEndsItsCampaign(t *testing.T) {
	failed := errors.New("no disk")
	for _, want := range []error{nil, failed, context.Canceled} {
		inBubble(t, 3, func(t *testing.T, cl *cluster) {
			terms := 0
			err := cl.client(quorum.Config{}).Campaign(t.Context(), "chair", func(ctx context.Context, term *quorum.Lease) error {
				terms++
				if quorum.LeaseFrom(ctx) != term || term.Name() != "chair" || term.Token() <= 0 {
					t.Errorf("the context carries %v, and the term is %v", quorum.LeaseFrom(ctx), term)
				}
				return want
			})
			if !errors.Is(err, want) || err != want || terms != 1 { //nolint:errorlint // the very same
				t.Errorf("%v after %d terms, want %v after one", err, terms, want)
			}
			mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "chair"))
		})
	}
}

// A leader that does not heed its context keeps the next term of its own campaign from beginning, and nobody else's.
func TestLeaderThatGoesOnIsWarnedOfAndSucceededElsewhere(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		stubborn, leave := make(chan *quorum.Lease, 10), make(chan struct{})
		k := campaigning(t, cl.clientOn(way, quorum.Config{}), func(_ context.Context, term *quorum.Lease) error {
			stubborn <- term
			<-leave
			return nil
		})
		first := <-stubborn
		o := office{t: t}
		next := campaigning(t, cl.client(quorum.Config{}), o.untilLost)
		for _, n := range cl.nodes {
			way.Cut(n)
		}
		cl.eventually(2*ttl, "another leads", func() bool { return o.sitting() != nil })
		wantIs(t, first.Err(), quorum.ErrLost)
		if o.sitting().Token() <= first.Token() {
			t.Errorf("token %d after %d", o.sitting().Token(), first.Token())
		}
		cl.eventually(ttl, "a warning", func() bool { return contains(cl.log.String(), "a leader goes on though its lease is lost") })
		for _, n := range cl.nodes {
			way.Mend(n)
		}
		wantIs(t, next.end(nil), context.Canceled) // the chair is free, and still
		cl.never(2*ttl, "two terms of one campaign at once", func() bool { return len(stubborn) > 0 })
		close(leave)
		if second := <-stubborn; second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		<-k.over
		wantIs(t, k.err, nil)
	})
}

func TestCampaignEndsWithItsContextWhileItWaits(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		held := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "chair")
		k := campaigning(t, cl.client(quorum.Config{}), func(context.Context, *quorum.Lease) error {
			t.Error("elected")
			return nil
		})
		time.Sleep(time.Minute)
		retired := errors.New("retired")
		err := k.end(retired)
		wantIs(t, err, context.Canceled)
		wantIs(t, err, retired)
		wantIsNot(t, err, quorum.ErrNotAcquired)
		mustRelease(t, held)
	})
}

// A leader whose campaign ends leads until it returns: it may tidy up under the lock.
func TestLeaderTidiesUpWhenItsCampaignsContextEnds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		elected := make(chan struct{})
		retired, tidied := errors.New("retired"), errors.New("tidied up")
		k := campaigning(t, cl.client(quorum.Config{}), func(ctx context.Context, term *quorum.Lease) error {
			close(elected)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), retired) {
				t.Errorf("the context ended with %v", context.Cause(ctx))
			}
			time.Sleep(3 * ttl)
			if err := term.Err(); err != nil {
				t.Errorf("the term ended before its leader did: %v", err)
			}
			return tidied
		})
		<-elected
		wantIs(t, k.end(retired), tidied)
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "chair"))
	})
}

// The campaign's context ended first, and then the term was lost: there is no other.
func TestTermThatIsLostAfterTheCampaignsContextEndedIsTheLast(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		elected, terms := make(chan struct{}), 0
		k := campaigning(t, cl.client(quorum.Config{}), func(_ context.Context, term *quorum.Lease) error {
			terms++
			close(elected)
			<-term.Done()
			return nil
		}, quorum.WithLeaseTime(10*time.Second))
		<-elected
		wantIs(t, k.end(nil), context.Canceled)
		if terms != 1 {
			t.Errorf("%d terms", terms)
		}
	})
}

// A term of a lease time is lost when it is over, and others who stand get theirs.
func TestLeaseTimeIsALimitOfTerms(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		o := office{t: t}
		led := map[int]int{}
		var campaigns []*campaign
		for i := range 2 {
			campaigns = append(campaigns, campaigning(t, cl.client(quorum.Config{}), func(ctx context.Context, term *quorum.Lease) error {
				led[i]++ // one leads at a time
				return o.untilLost(ctx, term)
			}, quorum.WithLeaseTime(5*time.Second)))
		}
		time.Sleep(5 * time.Minute)
		for _, k := range campaigns {
			wantIs(t, k.end(nil), context.Canceled)
		}
		if led[0] < 2 || led[1] < 2 || o.terms() < 30 {
			t.Errorf("terms: %v", led)
		}
	})
}

func TestCampaignWaitsForNodesThatAreDownAtItsStart(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Kill()
		}
		o := office{t: t}
		k := campaigning(t, cl.client(quorum.Config{}), o.untilLost)
		time.Sleep(time.Hour)
		for _, n := range cl.nodes {
			n.Start(true)
		}
		cl.eventually(2*ttl, "a leader", func() bool { return o.sitting() != nil })
		wantIs(t, k.end(nil), context.Canceled)
	})
}

// What only an operator can mend is told to one, and tried again.
func TestCampaignGoesOnWhereItsCredentialsAreRefused(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		refuse := func(text string) {
			for _, n := range cl.nodes {
				n.Redis().SetError(text)
			}
		}
		refuse("NOPERM not yet")
		o := office{t: t}
		first := campaigning(t, cl.client(quorum.Config{}), o.untilLost)
		time.Sleep(time.Minute)
		start := time.Now()
		wantIs(t, first.end(nil), context.Canceled)
		if waited := time.Since(start); waited > 0 {
			t.Errorf("its end took %v", waited)
		}
		second := campaigning(t, cl.client(quorum.Config{}), o.untilLost)
		time.Sleep(time.Minute)
		refuse("")
		cl.eventually(ttl, "a leader", func() bool { return o.sitting() != nil })
		wantIs(t, second.end(nil), context.Canceled)
		if !contains(cl.log.String(), "nobody can be elected", "NOPERM not yet", "name=chair") {
			t.Error("an operator is not told")
		}
	})
}

// Who cannot tell the nodes that it resigns has resigned all the same; the next one comes when the TTL is over.
func TestResignationThatNoNodeHears(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		resigned := errors.New("resigned")
		k := campaigning(t, cl.clientOn(way, quorum.Config{}), func(context.Context, *quorum.Lease) error {
			for _, n := range cl.nodes {
				way.Cut(n)
			}
			return resigned
		})
		start := time.Now()
		<-k.over
		wantIs(t, k.err, resigned)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %v to resign", took)
		}
		if !contains(cl.log.String(), "resignation not confirmed") {
			t.Errorf("log: %s", cl.log)
		}
		o := office{t: t}
		next := campaigning(t, cl.client(quorum.Config{}), o.untilLost)
		cl.eventually(2*ttl, "another leads", func() bool { return o.sitting() != nil })
		wantIs(t, next.end(nil), context.Canceled)
		for _, n := range cl.nodes {
			way.Mend(n)
		}
	})
}

// Two processes with three campaigns each, on a network that an opponent cuts, and nodes that it kills and empties.
func TestNeverTwoLeadersWhateverFails(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		o := office{t: t}
		var ways []*faultnet.Cable
		var campaigns []*campaign
		for range 2 {
			way := &faultnet.Cable{}
			ways = append(ways, way)
			c := cl.clientOn(way, quorum.Config{})
			for range 3 {
				campaigns = append(campaigns, campaigning(t, c, o.untilLost))
			}
		}
		for round := range 12 {
			cl.eventually(10*ttl, "a leader", func() bool { return o.sitting() != nil })
			switch way := ways[round%2]; round % 3 {
			case 0: // one of the processes is cut off, the leader's or not
				for _, n := range cl.nodes {
					way.Cut(n)
				}
				time.Sleep(2 * ttl)
				for _, n := range cl.nodes {
					way.Mend(n)
				}
			case 1: // all nodes are gone for longer than a term lives
				for _, n := range cl.nodes {
					n.Kill()
				}
				time.Sleep(ttl)
				for _, n := range cl.nodes {
					n.Start(true)
				}
			default: // nodes forget, one after another, each long enough after the one before
				n := cl.nodes[round%5]
				n.Kill()
				n.Start(false)
				time.Sleep(2 * ttl)
			}
		}
		if o.terms() < 5 {
			t.Errorf("%d terms: nothing was shown", o.terms())
		}
		for _, k := range campaigns {
			wantIs(t, k.end(nil), context.Canceled)
		}
	})
}

func TestCampaignsOfOneProcessExcludeEachOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		leading := 0
		lead := func(context.Context, *quorum.Lease) error {
			leading++
			if leading > 1 {
				t.Error("two lead")
			}
			time.Sleep(time.Second)
			leading--
			return nil
		}
		// Under the very context of a leader, too.
		outer, inner := context.WithCancel(t.Context())
		defer inner()
		err := c.Campaign(outer, "chair", func(ctx context.Context, _ *quorum.Lease) error {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			wantIs(t, c.Campaign(ctx, "chair", lead), context.DeadlineExceeded)
			return c.Do(ctx, "chair", func(context.Context) error { return nil }) // which nests, if there is time
		})
		wantIs(t, err, context.DeadlineExceeded)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := c.Campaign(t.Context(), "chair", lead); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestLeaderMayTakeItsLockAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		if err := c.Campaign(t.Context(), "chair", func(ctx context.Context, term *quorum.Lease) error {
			return c.Do(ctx, "chair", func(ctx context.Context) error {
				if token := quorum.LeaseFrom(ctx).Token(); token != term.Token() {
					t.Errorf("token %d under %d", token, term.Token())
				}
				return nil
			})
		}); err != nil {
			t.Error(err)
		}
	})
}

// However a leader goes, the chair is free.
func TestPanicAndExitOfALeaderResign(t *testing.T) {
	for title, lead := range map[string]func(context.Context, *quorum.Lease) error{
		"panic":    func(context.Context, *quorum.Lease) error { panic("oops") },
		"Goexit":   func(context.Context, *quorum.Lease) error { runtime.Goexit(); return nil },
		"released": func(ctx context.Context, term *quorum.Lease) error { return term.Release(context.WithoutCancel(ctx)) },
	} {
		t.Run(title, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				c := cl.client(quorum.Config{})
				caught := make(chan any, 1)
				go func() {
					defer func() { caught <- recover() }()
					if err := c.Campaign(t.Context(), "chair", lead); err != nil {
						t.Error(err)
					}
				}()
				if got := fmt.Sprint(<-caught); (got == "oops") != (title == "panic") {
					t.Errorf("recovered %s", got)
				}
				mustRelease(t, mustAcquire(t, c, t.Context(), "chair"))
			})
		})
	}
}

func TestCampaignEndsWithItsCoordinator(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		o := office{t: t}
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		leader := campaigning(t, a, o.untilLost)
		cl.eventually(time.Second, "a leader", func() bool { return o.sitting() != nil })
		waiter := campaigning(t, b, o.untilLost)
		synctest.Wait()
		for c, k := range map[*quorum.Coordinator]*campaign{b: waiter, a: leader} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			<-k.over
			wantIs(t, k.err, quorum.ErrClosed)
		}
	})
}

func TestCampaignRefusesWhatMakesNoSense(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		dials := cl.dials()
		lead := func(context.Context, *quorum.Lease) error { t.Error("elected"); return nil }
		for rule, err := range map[string]error{
			"nil function": c.Campaign(t.Context(), "chair", nil),
			"name":         c.Campaign(t.Context(), "", lead),
			"WithWaitTime": c.Campaign(t.Context(), "chair", lead, quorum.WithWaitTime(time.Second)),
			"1ms":          c.Campaign(t.Context(), "chair", lead, quorum.WithLeaseTime(1)),
			"is nil":       c.Campaign(t.Context(), "chair", lead, nil),
		} {
			if err == nil || !contains(err.Error(), rule) {
				t.Errorf("%v, want one that says %s", err, rule)
			}
		}
		cl.untouched(dials)
	})
}
