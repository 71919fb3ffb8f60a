package node_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// endsInTime runs a request that cannot work, and checks that it ends when its time is up: neither much later nor
// before.
func endsInTime(t *testing.T, n *node.Node, want verdict) {
	t.Helper()
	start := time.Now()
	_, err := ask(n, lock("hung"), budget)
	took := time.Since(start)
	wantError(t, err, want)
	if took < budget-20*time.Millisecond || took > budget+2*time.Second {
		t.Errorf("took %v, want %v", took, budget)
	}
}

func TestRunEndsAtItsDeadline(t *testing.T) {
	unsent, sent := verdict{timeout: true}, verdict{timeout: true, sent: true}
	t.Run("the connection cannot be made", func(t *testing.T) {
		t.Parallel()
		endsInTime(t, with(t, &redis.Options{Addr: "blackhole:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}), unsent)
	})
	for _, tt := range []struct {
		title, command, reply string
		want                  verdict
	}{
		{"HELLO is never answered", "HELLO", hang, unsent},
		{"HELLO is answered in part", "HELLO", "%7\r\n$6\r\nser", unsent},
		{"TIME is never answered", "TIME", hang, unsent},
		{"the reply is lost", "EVALSHA", hang, sent},
		{"the reply comes in part", "EVALSHA", "*6\r\n$7\r\ngranted\r\n:17", sent},
		{"the script is not known, and its source is never answered", "EVALSHA", "-NOSCRIPT No matching script\r\n", sent},
	} {
		t.Run(tt.title, func(t *testing.T) {
			t.Parallel()
			f := serve(t, func(c []string) string {
				if c[0] == "EVAL" {
					return hang
				}
				return on(tt.command, tt.reply)(c)
			})
			endsInTime(t, open(t, f.url()), tt.want)
		})
	}
	t.Run("the server stops", func(t *testing.T) {
		t.Parallel()
		s := redisserver.Start(t)
		n := open(t, s.URL())
		must(t, n, lock("before"), script.Granted)
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		endsInTime(t, n, sent)
		endsInTime(t, n, unsent) // on a new connection now
	})
	t.Run("the connection is busy", func(t *testing.T) {
		t.Parallel()
		f := serve(t, on("EVALSHA", hang))
		n := open(t, f.url(), node.WithBatches(1))
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { _, _ = ask(n, lock("busy"), 2*budget+time.Second) })
		eventually(t, "the connection is busy", func() bool { return f.count("EVALSHA") == 1 })
		endsInTime(t, n, unsent)
	})
}

func TestCancellationEndsOnlyWhatWasNotSent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	arrived, answer := make(chan struct{}), make(chan struct{})
	f := serve(t, func(c []string) string {
		if c[0] != "EVALSHA" {
			return ""
		}
		close(arrived)
		<-answer
		return granted()
	})
	n := open(t, f.url())
	go func() {
		<-arrived
		cancel()
		close(answer)
	}()
	bounded, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if got, err := n.Run(bounded, lock("a"), n.Clock().Now().Add(patience)); err != nil || got.Status != script.Granted {
		t.Errorf("cancelled under way: %+v, %v, want the answer", got, err)
	}
	_, err := n.Run(bounded, lock("b"), n.Clock().Now().Add(patience))
	wantError(t, err, verdict{timeout: true})
	if f.count("EVALSHA") != 1 {
		t.Error("a request that was cancelled before was sent")
	}
}

func TestBrokenConnections(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		f := serve(t, on("", ""))
		n := open(t, f.url())
		f.stop()
		for range 30 { // go-redis would stop dialling after some
			start := time.Now()
			_, err := ask(n, lock("a"), patience)
			wantError(t, err, verdict{})
			if took := time.Since(start); took > time.Second {
				t.Fatalf("noticed after %v", took)
			}
		}
		var op *net.OpError
		if _, err := ask(n, lock("a"), patience); !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("got %v, want what the network said", err)
		}
	})
	for _, tt := range []struct {
		title, command string
		want           verdict
	}{
		{"in the handshake", "TIME", verdict{}},
		{"with the request", "EVALSHA", verdict{sent: true}},
	} {
		t.Run(tt.title, func(t *testing.T) {
			f := serve(t, on(tt.command, hangUp))
			_, err := ask(open(t, f.url()), lock("a"), patience)
			wantError(t, err, tt.want)
			if n := f.count("EVALSHA"); n > 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
}

// What go-redis does by itself, three times.
func TestNothingIsSentTwice(t *testing.T) {
	for title, reply := range map[string]string{
		"an answer that says try again": "-LOADING Redis is loading the dataset in memory\r\n",
		"no answer":                     hang,
		"a broken connection":           hangUp,
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			f := serve(t, on("EVALSHA", reply))
			n := with(t, &redis.Options{Addr: f.Addr().String(), MaxRetries: 5, MinRetryBackoff: 1, MaxRetryBackoff: 1})
			if _, err := ask(n, lock("a"), budget); err == nil {
				t.Error("want an error")
			}
			if n := f.count("EVALSHA"); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// A request without a last moment, as a release is, expires never.
func TestLastMoment(t *testing.T) {
	args := make(chan []string, 1)
	f := serve(t, func(c []string) string {
		if c[0] != "EVALSHA" {
			return ""
		}
		args <- c
		return granted()
	})
	n := open(t, f.url())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := func(until clock.Instant) int64 {
		t.Helper()
		if _, err := n.Run(ctx, lock("a"), until); err != nil {
			t.Fatal(err)
		}
		return micros(t, (<-args)[7])
	}
	if got := last(clock.Instant{}); got != 0 {
		t.Errorf("without a last moment it is %d, want 0", got)
	}
	// Even a past one is one.
	if got := last(n.Clock().Now().Add(-1 << 62)); got <= 0 || got >= time.Now().UnixMicro() {
		t.Errorf("a last moment that is past is %d", got)
	}
	for _, left := range []time.Duration{time.Second, time.Hour} {
		until, before := n.Clock().Now().Add(left), time.Now()
		got, latest := last(until), before.Add(left).UnixMicro()+2000
		if got > latest || got < latest-2_000_000 {
			t.Errorf("the last moment is %d us after it should be", got-latest)
		}
	}
}
