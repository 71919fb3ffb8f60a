package quorum_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// Every invalid input is refused at once, with a message that names the value and the rule.
func TestInvalidConfigurationIsRefused(t *testing.T) {
	good := []string{"redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"}
	for _, test := range []struct {
		name string
		cfg  quorum.Config
		urls []string
		want []string
	}{
		{"no nodes", quorum.Config{}, nil, []string{"no nodes", "at least one"}},
		{"same address", quorum.Config{}, []string{"redis://h:6379", "redis://g:6379", "redis://H:6379/2"}, []string{"1 and 3", "h:6379", "same address"}},
		{"same address, default port", quorum.Config{}, []string{"redis://h", "redis://h:6379"}, []string{"same address"}},
		{"same socket", quorum.Config{}, []string{"unix:///tmp/a.sock", "unix:///tmp/a.sock?db=1"}, []string{"/tmp/a.sock", "same address"}},
		{"localhost twice", quorum.Config{}, []string{"redis://localhost:7000", "redis://127.0.0.1:7000"}, []string{"same address"}},
		{"scheme", quorum.Config{}, []string{"http://h:6379"}, []string{"node 1 of 1", `"http"`, "rediss"}},
		{"no scheme", quorum.Config{}, []string{"h:6379"}, []string{"scheme", "redis://"}},
		{"unparsable", quorum.Config{}, []string{"redis://user:geheim@h:port"}, []string{"node 1 of 1", "redis://"}},
		{"option", quorum.Config{}, []string{"redis://:geheim@h:1?pool_size=many"}, []string{"redis://h:1"}},
		{"negative TTL", quorum.Config{TTL: -time.Second}, good, []string{"TTL", "-1s", "negative"}},
		{"tiny TTL", quorum.Config{TTL: time.Microsecond}, good, []string{"TTL", "1µs", "1ms"}},
		{"TTL too small", quorum.Config{TTL: 50 * time.Millisecond}, good, []string{"TTL", "50ms", "too small", "NodeTimeout"}},
		{"TTL too small for the node timeout", quorum.Config{TTL: time.Second, NodeTimeout: 400 * time.Millisecond}, good, []string{"1s", "400ms"}},
		{"TTL too small for the drift", quorum.Config{DriftFactor: 0.9}, good, []string{"drift", "27"}},
		{"negative node timeout", quorum.Config{NodeTimeout: -1}, good, []string{"NodeTimeout", "-1ns"}},
		{"negative MaxHold", quorum.Config{MaxHold: -time.Minute}, good, []string{"MaxHold", "-1m"}},
		{"negative GuardTime", quorum.Config{GuardTime: -time.Minute}, good, []string{"GuardTime", "-1m"}},
		{"negative drift", quorum.Config{DriftFactor: -0.1}, good, []string{"DriftFactor", "-0.1", "(0,1)"}},
		{"drift of one", quorum.Config{DriftFactor: 1}, good, []string{"DriftFactor", "(0,1)"}},
		{"a prefix that is a pattern", quorum.Config{Prefix: "shop*"}, good, []string{`Prefix "shop*"`, "none of *?[]", "ACL"}},
		{"a prefix that escapes", quorum.Config{Prefix: `shop\`}, good, []string{"Prefix", "ACL"}},
		{"a prefix of several words", quorum.Config{Prefix: "the shop:"}, good, []string{`"the shop:"`, "no space"}},
		{"a prefix that ends in NUL", quorum.Config{Prefix: "shop\x00"}, good, []string{`"shop\x00"`, "unprintable"}},
		{"a prefix that is no text", quorum.Config{Prefix: "shop\xff"}, good, []string{`"shop\xff"`, "unprintable"}},
		{"a prefix of the nodes' own keys", quorum.Config{Prefix: "red"}, good, []string{`"red"`, "want another one"}},
		{"a prefix within the nodes' own keys", quorum.Config{Prefix: "redquorum_fence:{shop:"}, good, []string{"redquorum_fence", "want another one"}},
		{"drift is no number", quorum.Config{DriftFactor: math.NaN()}, good, []string{"DriftFactor", "NaN"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := quorum.Open(test.cfg, test.urls...)
			if err == nil {
				_ = c.Close()
				t.Fatal("accepted")
			}
			if !contains(err.Error(), test.want...) {
				t.Errorf("%q does not name %q", err, test.want)
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("%q contains the password", err)
			}
			if valid := test.cfg.Validate() == nil; valid != (test.cfg == quorum.Config{}) {
				t.Errorf("Validate says %v", test.cfg.Validate())
			}
		})
	}
}

func TestInvalidNodesAreRefused(t *testing.T) {
	if _, err := quorum.New([]*node.Node{nil}, quorum.Config{}); err == nil || !contains(err.Error(), "nil") {
		t.Error(err)
	}
	n, err := node.Open("redis://h:1", node.WithClock(clock.NewPortable()))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := quorum.New([]*node.Node{n}, quorum.Config{}); err == nil || !contains(err.Error(), "clock") {
		t.Error(err)
	}
}

func TestInvalidCallsTouchNoNode(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		ctx, before := t.Context(), cl.dials()
		for _, test := range []struct {
			name string
			err  error
			want []string
		}{
			{"empty name", second(c.Acquire(ctx, "")), []string{"name", "empty"}},
			{"the name of a node's record", second(c.Acquire(ctx, script.RecordKey)), []string{"name", "redquorum_node"}},
			{"the name of a counter", second(c.Acquire(ctx, script.FenceKey("stock"))), []string{"name", "redquorum_fence:{stock}"}},
			{"the name of a revocation", second(c.ForceRelease(ctx, script.RevokedKey("stock"))), []string{"name", "redquorum_revoked:{stock}"}},
			{"empty name, try", second(c.TryAcquire(ctx, "")), []string{"name", "empty"}},
			{"empty name, inspect", second(c.Inspect(ctx, "")), []string{"name", "empty"}},
			{"empty name, force", second(c.ForceRelease(ctx, "")), []string{"name", "empty"}},
			{"empty name, mutex", c.Mutex("").LockContext(ctx), []string{"name", "empty"}},
			{"negative lease time", second(c.Acquire(ctx, "x", quorum.WithLeaseTime(-time.Second))), []string{"lease time", "-1s", "negative"}},
			{"zero lease time", second(c.Acquire(ctx, "x", quorum.WithLeaseTime(0))), []string{"lease time", "0s", "1ms"}},
			{"lease time under 1ms", second(c.Acquire(ctx, "x", quorum.WithLeaseTime(999*time.Microsecond))), []string{"lease time", "999µs", "1ms"}},
			{"lease time within its drift", second(c.Acquire(ctx, "x", quorum.WithLeaseTime(2*time.Millisecond))), []string{"lease time", "2ms", "drift"}},
			{"negative wait time", second(c.Acquire(ctx, "x", quorum.WithWaitTime(-1))), []string{"wait time", "-1ns", "negative"}},
			{"wait time on try", second(c.TryAcquire(ctx, "x", quorum.WithWaitTime(time.Second))), []string{"WithWaitTime", "TryAcquire"}},
			{"nil option", second(c.Acquire(ctx, "x", nil)), []string{"option", "nil"}},
			{"nil function", c.Do(ctx, "x", nil), []string{"nil function"}},
		} {
			if test.err == nil || !contains(test.err.Error(), test.want...) {
				t.Errorf("%s: %v does not name %q", test.name, test.err, test.want)
			}
		}
		synctest.Wait()
		cl.untouched(before)
	})
}

func TestLeaseTimeIsCutToMilliseconds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		_ = mustAcquire(t, cl.client(quorum.Config{}), t.Context(), "x", quorum.WithLeaseTime(1500*time.Millisecond+999*time.Microsecond))
		synctest.Wait()
		if got := cl.nodes[0].Redis().TTL("x"); got != 1500*time.Millisecond {
			t.Errorf("TTL %v", got)
		}
	})
}

// A Locker is what code that takes locks asks for.
func TestCoordinatorIsALocker(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, cl *cluster) {
		var l quorum.Locker = cl.client(quorum.Config{})
		ran := false
		if err := l.Do(t.Context(), "x", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Error(ran, err)
		}
	})
}
