package direct_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/internal/direct"
	"github.com/redquorum/redquorum/node/embedded"
)

// complaint is what a go-redis that prints something would end.
type complaint struct{}

func (complaint) Printf(_ context.Context, format string, _ ...any) {
	panic("go-redis prints: " + format)
}

func TestMain(m *testing.M) {
	redis.SetLogger(complaint{})
	goleak.VerifyTestMain(m)
}

func start(t *testing.T) (*embedded.Cluster, *redis.Options) {
	t.Helper()
	c, err := embedded.Start(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &redis.Options{Addr: strings.TrimPrefix(c.URLs()[0], "redis://"), MaxRetries: -1}
}

func TestServerIsFoundAgainAfterARestart(t *testing.T) {
	nodes, opts := start(t)
	client := direct.New(opts)
	defer client.Close()
	for range 2 {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := nodes.Stop(0); err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Error("a stopped server answered")
		}
		if err := nodes.Restart(0, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

// A dial that nobody answers ends with the request, and with Close at the latest: go-redis' own would go on.
func TestDialEndsWithItsRequest(t *testing.T) {
	over := make(chan error, 1)
	client := direct.New(&redis.Options{Addr: "nobody:1", MaxRetries: -1, WriteTimeout: time.Hour, ReadTimeout: time.Hour,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			over <- ctx.Err()
			return nil, ctx.Err()
		}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := client.Ping(ctx).Err(); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
	select {
	case err := <-over:
		if err == nil {
			t.Error("the dial did not end with its context")
		}
	default:
		t.Error("the request is over, and its dial is not")
	}

	asked := make(chan error)
	go func() { asked <- client.Ping(context.Background()).Err() }()
	for client.PoolStats().TotalConns == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := <-asked; err == nil {
		t.Error("a request was answered after Close")
	}
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("the dial ended with %v, want that it was cancelled", err)
	}
}
