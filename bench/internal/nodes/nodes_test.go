package nodes_test

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/internal/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func choose(t *testing.T, urls ...string) *nodes.Set {
	t.Helper()
	s, err := nodes.Choose(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestNamedNodesAreTakenAndLeftAlone(t *testing.T) {
	s := choose(t, "redis://127.0.0.1:1", "redis://127.0.0.1:2")
	if s.Kind != nodes.Given || len(s.URLs) != 2 || s.Ours() {
		t.Errorf("kind %s, %d nodes, ours %v", s.Kind, len(s.URLs), s.Ours())
	}
	for _, err := range []error{s.Hang(0), s.Resume(0), s.Kill(0)} {
		if !errors.Is(err, nodes.ErrNotOurs) {
			t.Errorf("%v, want ErrNotOurs", err)
		}
	}
}

func TestWithoutABinaryNodesAreEmbeddedAndSaySo(t *testing.T) {
	t.Setenv("REDQUORUM_REDIS_SERVER", "/nonexistent/redis-server")
	s := choose(t)
	if s.Kind != nodes.Embedded || len(s.URLs) != nodes.Count || !strings.Contains(s.Describe(), "embedded") {
		t.Errorf("kind %s, %d nodes: %s", s.Kind, len(s.URLs), s.Describe())
	}
	faults(t, s)
}

func TestRealServersComeFirst(t *testing.T) {
	redisserver.Require(t)
	s := choose(t)
	if s.Kind != nodes.Real || len(s.URLs) != nodes.Count {
		t.Errorf("kind %s, %d nodes", s.Kind, len(s.URLs))
	}
	if s.Version(t.Context()) == "" {
		t.Error("no version")
	}
	faults(t, s)
}

func faults(t *testing.T, s *nodes.Set) {
	t.Helper()
	if err := errors.Join(s.Hang(0), s.Resume(0), s.Kill(1)); err != nil {
		t.Error(err)
	}
}

func TestWrongNodesAreRefusedWithTheValueAndTheRule(t *testing.T) {
	for _, c := range []struct {
		urls []string
		want []string
	}{
		{[]string{""}, []string{"node 1", "redis://host:port"}},
		{[]string{"redis://a:1", "http://b:2"}, []string{"node 2", "http://b:2", "redis://host:port"}},
		{[]string{"redis://a:1", "redis://a:1"}, []string{"nodes 1 and 2", "redis://a:1", "another server"}},
	} {
		_, err := nodes.Choose(c.urls)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q in it", c.urls, err, want)
			}
		}
	}
}

func TestPasswordsAreNotRepeated(t *testing.T) {
	for _, u := range []string{"http://:secret@a:1", "redis://:secret@a:1/nonumber", "redis://:sec%zzret@a:secret"} {
		_, err := nodes.Choose([]string{u})
		if err == nil || strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "sec%") {
			t.Errorf("%v", err)
		}
	}
}
