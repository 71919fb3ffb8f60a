package docker_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/docker"
)

// patience is how long a test waits for what is certain to come. It only tells a
// failure from a slow machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	// The reaper's image cannot be pulled everywhere, and each cluster has a
	// lifeline. Who wants the reaper nevertheless says false.
	if _, set := os.LookupEnv("TESTCONTAINERS_RYUK_DISABLED"); !set {
		_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	}
	if os.Getenv(orphanEnv) != "" {
		startAndHang()
	}
	goleak.VerifyTestMain(m)
}

// start starts n nodes for the length of the test. Without an engine the test is
// skipped, unless REDQUORUM_REQUIRE_DOCKER=1 says that there has to be one.
func start(t *testing.T, n int, opts docker.Options) *docker.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	c, err := docker.Start(ctx, n, opts)
	if errors.Is(err, docker.ErrNoEngine) {
		missing(t, err)
	}
	ok(t, err)
	t.Cleanup(func() { ok(t, c.Close()) })
	return c
}

// missing ends a test that lacks something on this machine.
func missing(t testing.TB, what any) {
	t.Helper()
	if os.Getenv("REDQUORUM_REQUIRE_DOCKER") == "1" {
		t.Fatalf("REDQUORUM_REQUIRE_DOCKER=1, but %v", what)
	}
	t.Skipf("needs containers: %v", what)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
