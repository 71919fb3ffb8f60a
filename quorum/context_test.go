package quorum_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

func TestDoReleasesWhateverTheFunctionDoes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		free := func(how string) {
			t.Helper()
			cl.eventually(time.Second, "free after "+how, func() bool { return cl.present("stock") == 0 })
		}
		failed := errors.New("no more stock")
		wantIs(t, c.Do(t.Context(), "stock", func(context.Context) error { return failed }), failed)
		free("an error")

		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic did not get through")
				}
			}()
			_ = c.Do(t.Context(), "stock", func(context.Context) error { panic("boom") })
		}()
		free("a panic")

		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Do(t.Context(), "stock", func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		free("Goexit")

		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Do(ctx, "stock", func(context.Context) error { cancel(); return nil }); err != nil {
			t.Error(err)
		}
		free("a cancelled context")
	})
}

func TestDoJoinsTheLossToTheFunctionsError(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		failed := errors.New("stopped in the middle")
		err := c.Do(t.Context(), "stock", func(ctx context.Context) error {
			<-ctx.Done()
			wantIs(t, context.Cause(ctx), quorum.ErrLost)
			return failed
		}, quorum.WithLeaseTime(time.Second))
		wantIs(t, err, quorum.ErrLost)
		wantIs(t, err, failed)
	})
}

func TestContextEndsWithItsParentAndWithItsLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		l := mustAcquire(t, c, t.Context(), "stock")
		parent, cancel := context.WithCancelCause(t.Context())
		short := l.Context(parent)
		long := l.Context(t.Context())
		child, stop := context.WithTimeout(context.WithValue(long, "k", "v"), time.Hour) //nolint:revive,staticcheck // a plain key
		defer stop()

		gone := errors.New("the request is over")
		cancel(gone)
		<-short.Done()
		wantIs(t, context.Cause(short), gone)
		if long.Err() != nil || child.Err() != nil || l.Err() != nil {
			t.Fatal("the lease ended with one of its contexts")
		}
		mustRelease(t, l)
		wantIs(t, long.Err(), context.Canceled)
		wantIs(t, context.Cause(long), quorum.ErrReleased)
		<-child.Done()
		wantIs(t, context.Cause(child), quorum.ErrReleased)
		wantIs(t, l.Context(t.Context()).Err(), context.Canceled)
	})
}

// A process that was suspended finds the lease ended at its very first look, whatever it looks at, and before any
// timer has had a chance to run.
func TestFirstLookAfterASuspendShowsTheEnd(t *testing.T) {
	looks := map[string]func(l *quorum.Lease, ctx, child context.Context) bool{
		"Err":       func(l *quorum.Lease, _, _ context.Context) bool { return errors.Is(l.Err(), quorum.ErrLost) },
		"Remaining": func(l *quorum.Lease, _, _ context.Context) bool { return l.Remaining() == 0 },
		"HoldCount": func(l *quorum.Lease, _, _ context.Context) bool { return l.HoldCount() == 0 },
		"Release": func(l *quorum.Lease, _, _ context.Context) bool {
			return errors.Is(l.Release(context.Background()), quorum.ErrLost)
		},
		"Renew": func(l *quorum.Lease, _, _ context.Context) bool {
			return errors.Is(l.Renew(context.Background()), quorum.ErrLost)
		},
		"Done": func(l *quorum.Lease, _, _ context.Context) bool {
			select {
			case <-l.Done():
				return true
			default:
				return false
			}
		},
		"context's Err": func(_ *quorum.Lease, ctx, _ context.Context) bool { return ctx.Err() != nil },
		"context's Done": func(_ *quorum.Lease, ctx, _ context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
		"context's Cause": func(_ *quorum.Lease, ctx, _ context.Context) bool {
			return errors.Is(context.Cause(ctx), quorum.ErrLost)
		},
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, cl *cluster) {
				suspended := &suspendable{Clock: cl.clock}
				cl.clock = suspended
				l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
				ctx := l.Context(t.Context())
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				synctest.Wait()
				suspended.sleep(2 * ttl) // no timer has run
				if !look(l, ctx, child) {
					t.Error("the lease looks alive")
				}
			})
		})
	}
}

func TestContextsLeaveNothingWithALongLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock")
		for range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			_ = l.Context(ctx)
			cancel()
		}
		synctest.Wait()
		if n := quorum.ContextsOf(l); n != 0 {
			t.Errorf("%d contexts stay with the lease", n)
		}
	})
}

func TestLeaseFromIsTheInnermostLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		if quorum.LeaseFrom(t.Context()) != nil {
			t.Error("a lease from nowhere")
		}
		err := c.Do(t.Context(), "stock", func(ctx context.Context) error {
			outer := quorum.LeaseFrom(ctx)
			return c.Do(ctx, "prices", func(ctx context.Context) error {
				inner := quorum.LeaseFrom(ctx)
				if outer.Name() != "stock" || inner.Name() != "prices" || inner.Token() <= 0 {
					t.Errorf("%v, %v", outer, inner)
				}
				if quorum.LeaseFrom(quorum.WithoutLease(ctx)) != nil {
					t.Error("WithoutLease carries a lease")
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Whoever waits for a context to end, and looks at nothing else, is told of the lease's end.
func TestContextThatIsWaitedForEndsWithItsLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		l := mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "stock", quorum.WithLeaseTime(time.Second))
		child, cancel := context.WithCancel(l.Context(t.Context()))
		defer cancel()
		select {
		case <-child.Done(): // asked for while the lease lived
			wantIs(t, context.Cause(child), quorum.ErrLost)
		case <-time.After(time.Second):
			t.Error("the lease is over, and the context is not")
		}
	})
}
