package script_test

import (
	"strings"
	"testing"

	"github.com/redquorum/redquorum/script"
)

func TestQuoteTellsWhatALineRanWith(t *testing.T) {
	line := func(req script.Request, words string) int {
		t.Helper()
		before, _, ok := strings.Cut(req.Script().Source, words)
		if !ok {
			t.Fatalf("%s has no line with %s", req.Script().Name, words)
		}
		return 1 + strings.Count(before, "\n")
	}
	for _, tt := range []struct {
		req         script.Request
		words, want string
	}{
		{aProbe, "'PUBLISH'", "redis.call('PUBLISH', 'redisson_lock__channel:{scratch}', '1')"},
		{aProbe, "'DEL'", "redis.call('DEL', 'scratch', 'redquorum_fence:{scratch}')"},
		{aProbe, "'PEXPIRE'", "redis.call('PEXPIRE', 'scratch', '1000')"}, // without the comment
		{anAcquire, "redis.call('HSET', KEYS[1]", "redis.call('HSET', 'order:42', '" + us + "', '1')"},
		{anAcquire, "redis.call('PEXPIRE'", "redis.call('PEXPIRE', 'order:42', '30000')"},
		{anAcquire, "if ARGV[2] ~= ''", "if ARGV[2] ~= '' then"}, // the seal's, of which nothing is known
		{aRaise, "'HGET'", "local count = redis.call('HGET', 'order:42', '" + us + "')"},
		{aCheck, "'HMGET'", "local record = redis.call('HMGET', 'redquorum_node', 'incarnation', 'run', 'replication', 'until', 'ttl', 'nodes', 'durable', 'since')"},
	} {
		if got := script.Prepare(tt.req).Quote(line(tt.req, tt.words)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.req.Script().Name, got, tt.want)
		}
	}
	for _, n := range []int{-1, 0, 1 + len(strings.Split(aProbe.Script().Source, "\n"))} {
		if got := script.Prepare(aProbe).Quote(n); got != "" {
			t.Errorf("line %d: %q", n, got)
		}
	}
}
