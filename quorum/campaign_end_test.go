package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/quorum"
)

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

func TestCampaignEndsWithItsContextWhileItWaits(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		held := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "chair")
		k := quorumtest.Campaigning(t, cl.client(quorum.Config{}), func(context.Context, *quorum.Lease) error {
			t.Error("elected")
			return nil
		})
		time.Sleep(time.Minute)
		retired := errors.New("retired")
		err := k.End(retired)
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
		k := quorumtest.Campaigning(t, cl.client(quorum.Config{}), func(ctx context.Context, term *quorum.Lease) error {
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
		wantIs(t, k.End(retired), tidied)
		mustRelease(t, mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "chair"))
	})
}

// The campaign's context ended first, and then the term was lost: there is no other.
func TestTermThatIsLostAfterTheCampaignsContextEndedIsTheLast(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		elected, terms := make(chan struct{}), 0
		k := quorumtest.Campaigning(t, cl.client(quorum.Config{}), func(_ context.Context, term *quorum.Lease) error {
			terms++
			close(elected)
			<-term.Done()
			return nil
		}, quorum.WithLeaseTime(10*time.Second))
		<-elected
		wantIs(t, k.End(nil), context.Canceled)
		if terms != 1 {
			t.Errorf("%d terms", terms)
		}
	})
}

// Who cannot tell the nodes that it resigns has resigned all the same; the next one comes when the TTL is over.
func TestResignationThatNoNodeHears(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		resigned := errors.New("resigned")
		k := quorumtest.Campaigning(t, cl.clientOn(way, quorum.Config{}), func(context.Context, *quorum.Lease) error {
			for _, n := range cl.nodes {
				way.Cut(n)
			}
			return resigned
		})
		start := time.Now()
		<-k.Over
		wantIs(t, k.Err, resigned)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %v to resign", took)
		}
		if !contains(cl.log.String(), "resignation not confirmed") {
			t.Errorf("log: %s", cl.log)
		}
		o := quorumtest.Office{T: t}
		next := quorumtest.Campaigning(t, cl.client(quorum.Config{}), o.UntilLost)
		cl.eventually(2*ttl, "another leads", func() bool { return o.Sitting() != nil })
		wantIs(t, next.End(nil), context.Canceled)
		for _, n := range cl.nodes {
			way.Mend(n)
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
		o := quorumtest.Office{T: t}
		a, b := cl.client(quorum.Config{}), cl.client(quorum.Config{})
		leader := quorumtest.Campaigning(t, a, o.UntilLost)
		cl.eventually(time.Second, "a leader", func() bool { return o.Sitting() != nil })
		waiter := quorumtest.Campaigning(t, b, o.UntilLost)
		synctest.Wait()
		for c, k := range map[*quorum.Coordinator]*quorumtest.Campaign{b: waiter, a: leader} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			<-k.Over
			wantIs(t, k.Err, quorum.ErrClosed)
		}
	})
}
