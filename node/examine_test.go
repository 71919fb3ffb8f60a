package node_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

func TestServerTellsOperatorsOfItself(t *testing.T) {
	s := redisserver.Start(t, "--appendonly", "yes", "--maxmemory", "100mb")
	n := open(t, s.URL())
	info, err := n.Info(t.Context())
	if err != nil || info["redis_version"] == "" || info["role"] != "master" || info["maxmemory"] != "104857600" {
		t.Errorf("%v, info %q", err, info)
	}
	settings, err := n.Settings(t.Context(), "append*")
	if err != nil || settings["appendonly"] != "yes" || settings["maxmemory"] != "" {
		t.Errorf("%v, settings %q", err, settings)
	}
	if record, err := n.Record(t.Context()); err != nil || len(record) != 0 {
		t.Errorf("%v, record %q of a server without one", err, record)
	}
	if err := s.Client().HSet(t.Context(), script.RecordKey, "nodes", 5).Err(); err != nil {
		t.Fatal(err)
	}
	if record, err := n.Record(t.Context()); err != nil || record["nodes"] != "5" {
		t.Errorf("%v, record %q", err, record)
	}
	before := time.Now().Truncate(time.Microsecond)
	r, err := n.Time(t.Context())
	if err != nil || r.Received.Before(r.Sent) || r.Shown.Before(before) || r.Shown.After(time.Now()) {
		t.Errorf("%v, %v between %v and %v; it is %v", err, r.Shown, r.Sent, r.Received, before)
	}
}

// What may be forbidden is an error of its own, and what hangs ends with its context.
func TestServerThatTellsNothingIsAnError(t *testing.T) {
	s := redisserver.Start(t)
	rules := []any{"ACL", "SETUSER", "curious", "on", ">pw", "~nothing", "+@all", "-info", "-config"}
	if err := s.Client().Do(t.Context(), rules...).Err(); err != nil {
		t.Fatal(err)
	}
	questions := map[string]func(context.Context, *node.Node) error{
		"info":     func(ctx context.Context, n *node.Node) error { _, err := n.Info(ctx); return err },
		"settings": func(ctx context.Context, n *node.Node) error { _, err := n.Settings(ctx, "save"); return err },
		"record":   func(ctx context.Context, n *node.Node) error { _, err := n.Record(ctx); return err },
	}
	curious := open(t, "redis://curious:pw@"+s.Addr())
	for title, ask := range questions {
		t.Run(title, func(t *testing.T) { wantError(t, ask(t.Context(), curious), verdict{refused: true, permanent: true}) })
	}
	questions["time"] = func(ctx context.Context, n *node.Node) error { _, err := n.Time(ctx); return err }
	f := serve(t, func(c []string) string {
		if c[0] == "hello" {
			return ""
		}
		return hang
	})
	n := open(t, f.url())
	for _, ask := range questions {
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		wantError(t, ask(ctx, n), verdict{timeout: true})
		cancel()
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for title, ask := range questions {
		if err := ask(t.Context(), n); !errors.Is(err, node.ErrClosed) {
			t.Errorf("%s after Close: %v", title, err)
		}
	}
}
