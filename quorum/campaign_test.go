package quorum_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/quorum"
)

func TestLostTermIsFollowedByAnother(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		o := quorumtest.Office{T: t}
		k := quorumtest.Campaigning(t, cl.client(quorum.Config{}), func(ctx context.Context, term *quorum.Lease) error {
			o.Enter(term)
			defer o.Leave(term)
			<-ctx.Done()
			if want := []error{context.Canceled, quorum.ErrLost}[min(1, 5-o.Terms())]; !errors.Is(context.Cause(ctx), want) {
				t.Errorf("the context ended with %v", context.Cause(ctx))
			}
			return []error{nil, errors.New("connection closed"), ctx.Err()}[o.Terms()%3] // it does not matter what
		})
		operator := cl.client(quorum.Config{})
		for n := 1; n < 5; n++ {
			cl.eventually(ttl, "a leader", func() bool { return o.Terms() == n && o.Sitting() != nil })
			synctest.Wait()
			if held, err := operator.ForceRelease(t.Context(), "chair"); err != nil || !held {
				t.Fatal(held, err)
			}
		}
		cl.eventually(ttl, "a leader", func() bool { return o.Terms() == 5 && o.Sitting() != nil })
		if !contains(cl.log.String(), "leadership lost", "connection closed") {
			t.Errorf("log: %s", cl.log)
		}
		wantIs(t, k.End(nil), context.Canceled) // which is what the last of them returned
	})
}

// A leader that does not heed its context keeps the next term of its own campaign from beginning, and nobody else's.
func TestLeaderThatGoesOnIsWarnedOfAndSucceededElsewhere(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		way := &faultnet.Cable{}
		stubborn, leave := make(chan *quorum.Lease, 10), make(chan struct{})
		k := quorumtest.Campaigning(t, cl.clientOn(way, quorum.Config{}), func(_ context.Context, term *quorum.Lease) error {
			stubborn <- term
			<-leave
			return nil
		})
		first := <-stubborn
		o := quorumtest.Office{T: t}
		next := quorumtest.Campaigning(t, cl.client(quorum.Config{}), o.UntilLost)
		for _, n := range cl.nodes {
			way.Cut(n)
		}
		cl.eventually(2*ttl, "another leads", func() bool { return o.Sitting() != nil })
		wantIs(t, first.Err(), quorum.ErrLost)
		if o.Sitting().Token() <= first.Token() {
			t.Errorf("token %d after %d", o.Sitting().Token(), first.Token())
		}
		cl.eventually(ttl, "a warning", func() bool { return contains(cl.log.String(), "a leader goes on though its lease is lost") })
		for _, n := range cl.nodes {
			way.Mend(n)
		}
		wantIs(t, next.End(nil), context.Canceled) // the chair is free, and still
		cl.never(2*ttl, "two terms of one campaign at once", func() bool { return len(stubborn) > 0 })
		close(leave)
		if second := <-stubborn; second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		<-k.Over
		wantIs(t, k.Err, nil)
	})
}

// A term of a lease time is lost when it is over, and others who stand get theirs.
func TestLeaseTimeIsALimitOfTerms(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		o := quorumtest.Office{T: t}
		led := map[int]int{}
		var campaigns []*quorumtest.Campaign
		for i := range 2 {
			campaigns = append(campaigns, quorumtest.Campaigning(t, cl.client(quorum.Config{}), func(ctx context.Context, term *quorum.Lease) error {
				led[i]++ // one leads at a time
				return o.UntilLost(ctx, term)
			}, quorum.WithLeaseTime(5*time.Second)))
		}
		time.Sleep(5 * time.Minute)
		for _, k := range campaigns {
			wantIs(t, k.End(nil), context.Canceled)
		}
		if led[0] < 2 || led[1] < 2 || o.Terms() < 30 {
			t.Errorf("terms: %v", led)
		}
	})
}

func TestCampaignWaitsForNodesThatAreDownAtItsStart(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		for _, n := range cl.nodes {
			n.Kill()
		}
		o := quorumtest.Office{T: t}
		k := quorumtest.Campaigning(t, cl.client(quorum.Config{}), o.UntilLost)
		time.Sleep(time.Hour)
		for _, n := range cl.nodes {
			n.Start(true)
		}
		cl.eventually(2*ttl, "a leader", func() bool { return o.Sitting() != nil })
		wantIs(t, k.End(nil), context.Canceled)
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
		o := quorumtest.Office{T: t}
		first := quorumtest.Campaigning(t, cl.client(quorum.Config{}), o.UntilLost)
		time.Sleep(time.Minute)
		start := time.Now()
		wantIs(t, first.End(nil), context.Canceled)
		if waited := time.Since(start); waited > 0 {
			t.Errorf("its end took %v", waited)
		}
		second := quorumtest.Campaigning(t, cl.client(quorum.Config{}), o.UntilLost)
		time.Sleep(time.Minute)
		refuse("")
		cl.eventually(ttl, "a leader", func() bool { return o.Sitting() != nil })
		wantIs(t, second.End(nil), context.Canceled)
		if !contains(cl.log.String(), "nobody can be elected", "NOPERM not yet", "name=chair") {
			t.Error("an operator is not told")
		}
	})
}

// Two processes with three campaigns each, on a network that an opponent cuts, and nodes that it kills and empties.
func TestNeverTwoLeadersWhateverFails(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, cl *cluster) {
		o := quorumtest.Office{T: t}
		var ways []*faultnet.Cable
		var campaigns []*quorumtest.Campaign
		for range 2 {
			way := &faultnet.Cable{}
			ways = append(ways, way)
			c := cl.clientOn(way, quorum.Config{})
			for range 3 {
				campaigns = append(campaigns, quorumtest.Campaigning(t, c, o.UntilLost))
			}
		}
		for round := range 12 {
			cl.eventually(10*ttl, "a leader", func() bool { return o.Sitting() != nil })
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
		if o.Terms() < 5 {
			t.Errorf("%d terms: nothing was shown", o.Terms())
		}
		for _, k := range campaigns {
			wantIs(t, k.End(nil), context.Canceled)
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
