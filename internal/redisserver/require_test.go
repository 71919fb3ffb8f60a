package redisserver

import (
	"os/exec"
	"testing"
)

// verdict is a test that only notes how it was ended.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Skipf(string, ...any)  { v.skipped = true }
func (v *verdict) Fatalf(string, ...any) { v.failed = true }

func TestRequire(t *testing.T) {
	present, err := exec.LookPath("sh") // any program stands in for the binary
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		name, binary, required string
		want                   verdict
	}{
		{"present", present, "", verdict{}},
		{"present and required", present, "1", verdict{}},
		{"missing", "no-such-redis-server", "", verdict{skipped: true}},
		{"missing but required", "no-such-redis-server", "1", verdict{failed: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("REDQUORUM_REDIS_SERVER", c.binary)
			t.Setenv("REDQUORUM_REQUIRE_REDIS", c.required)
			var got verdict
			Require(&got)
			if got != c.want {
				t.Errorf("skipped %v, failed %v; want %v, %v", got.skipped, got.failed, c.want.skipped, c.want.failed)
			}
		})
	}
}
