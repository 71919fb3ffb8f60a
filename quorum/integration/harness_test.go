package integration_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/quorum"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(taskVariable); task != "" {
		os.Exit(work(task)) // this is no test but a worker of one: see real_worker_test.go
	}
	_ = flag.Set("test.parallel", "10") // by default: they wait more than they work
	goleak.VerifyTestMain(m)
}

// mustAcquire acquires, at once.
func mustAcquire(t *testing.T, c *quorum.Coordinator, ctx context.Context, name string, opts ...quorum.Option) *quorum.Lease { //nolint:revive // t comes first in a test
	t.Helper()
	l, err := c.TryAcquire(ctx, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustRelease releases.
func mustRelease(t *testing.T, l *quorum.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// acquiring starts an Acquire and returns its result.
func acquiring(c *quorum.Coordinator, ctx context.Context, name string, opts ...quorum.Option) <-chan result { //nolint:revive // reads like Acquire
	ch := make(chan result, 1)
	go func() {
		l, err := c.Acquire(ctx, name, opts...)
		ch <- result{l, err}
	}()
	return ch
}

type result struct {
	lease *quorum.Lease
	err   error
}

// wantIs checks an error's class.
func wantIs(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("error is %v, want one that matches %v", err, class)
	}
}

// wantIsNot checks what an error must not match.
func wantIsNot(t *testing.T, err, class error) {
	t.Helper()
	if errors.Is(err, class) {
		t.Fatalf("error %v matches %v and must not", err, class)
	}
}

// contains tells whether a text contains all the parts.
func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
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
