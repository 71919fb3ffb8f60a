package embedded_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// These tests pin what a lock needs of a node: were an update of miniredis to
// lose any of it, the failure should appear here and not deep in the protocol.

func eval(t *testing.T, client *redis.Client, script string, keys []string, args ...any) any {
	t.Helper()
	return must(t, client.Eval(t.Context(), script, keys, args...))
}

func connect(t *testing.T) *redis.Client {
	t.Helper()
	return dial(t, start(t, 1).URLs()[0])
}

func TestKeysExpireByThemselves(t *testing.T) {
	client := connect(t)
	begin := time.Now()
	must(t, client.Set(t.Context(), "string", "value", 30*time.Millisecond))
	eval(t, client, "redis.call('HINCRBY', KEYS[1], 'field', 1); return redis.call('PEXPIRE', KEYS[1], 30)", []string{"hash"})
	eventually(t, "expiry", func() bool { return must(t, client.DBSize(t.Context())) == 0 })
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Errorf("keys of 30ms expired within %v", took)
	}
}

func TestScriptSurvivesKeyOfWrongType(t *testing.T) {
	client := connect(t)
	must(t, client.Set(t.Context(), "key", "no hash", time.Hour))
	got := eval(t, client, `
		local reply = redis.pcall('HGETALL', KEYS[1])
		if reply.err then return {reply.err, redis.call('PTTL', KEYS[1])} end
		return {'no error', 0}`, []string{"key"}).([]any)
	if msg, _ := got[0].(string); !strings.HasPrefix(msg, "WRONGTYPE") {
		t.Errorf("pcall returned %q, want WRONGTYPE", msg)
	}
	if pttl, _ := got[1].(int64); pttl <= 0 || pttl > time.Hour.Milliseconds() {
		t.Errorf("PTTL after a failed pcall: %v", got[1])
	}
}

func TestScriptReadsHash(t *testing.T) {
	client := connect(t)
	got := eval(t, client, `
		redis.call('HSET', KEYS[1], 'holder', 2)
		local all = redis.call('HGETALL', KEYS[1])
		return {all[1], all[2], #redis.call('HGETALL', KEYS[2])}`, []string{"key", "absent"}).([]any)
	if got[0] != "holder" || got[1] != "2" || got[2] != int64(0) {
		t.Errorf("HGETALL in a script gave %v", got)
	}
}

func TestScriptSetsAndExtendsTTL(t *testing.T) {
	client := connect(t)
	got := eval(t, client, `
		redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000)
		local first = redis.call('PTTL', KEYS[1])
		redis.call('PEXPIRE', KEYS[1], 60000)
		return {first, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1]),
			redis.call('PTTL', KEYS[2]), redis.call('DEL', KEYS[1])}`, []string{"key", "absent"}, "1700000000000001").([]any)
	first, second := got[0].(int64), got[1].(int64)
	if first <= 0 || first > 1000 || second <= 1000 || second > 60000 {
		t.Errorf("TTLs %d and %d, want at most 1000, then at most 60000", first, second)
	}
	if got[2] != "1700000000000001" || got[3] != int64(-2) || got[4] != int64(1) {
		t.Errorf("value, PTTL of nothing, DEL: %v", got[2:])
	}
}

// Requests expire on the node's clock, so this clock has to be the real one.
func TestTimeInScriptsIsTheRealClock(t *testing.T) {
	client := connect(t)
	now := func() time.Time {
		got := eval(t, client, "local t = redis.call('TIME'); return t[1] * 1000000 + t[2]", nil)
		return time.UnixMicro(got.(int64))
	}
	before := time.Now().Truncate(time.Microsecond)
	first := now()
	eventually(t, "TIME's advance", func() bool { return now().Sub(first) >= 5*time.Millisecond })
	after := time.Now()
	if first.Before(before) || now().Before(first) || first.After(after) {
		t.Errorf("TIME was %v between %v and %v", first, before, after)
	}
}

func TestScriptPublishes(t *testing.T) {
	client := connect(t)
	sub := client.Subscribe(t.Context(), "channel")
	defer sub.Close()
	_, err := sub.Receive(t.Context()) // the confirmation
	ok(t, err)
	if heard := eval(t, client, "return redis.call('PUBLISH', KEYS[1], ARGV[1])", []string{"channel"}, "0"); heard != int64(1) {
		t.Errorf("%v subscribers heard it, want 1", heard)
	}
	got, err := sub.ReceiveTimeout(t.Context(), patience)
	ok(t, err)
	if msg, isMessage := got.(*redis.Message); !isMessage || msg.Payload != "0" {
		t.Errorf("received %v, want the message 0", got)
	}
}

func TestPipelineOfScripts(t *testing.T) {
	client := connect(t)
	sha := must(t, client.ScriptLoad(t.Context(), "return redis.call('INCR', KEYS[1])"))
	pipe := client.Pipeline()
	known := pipe.EvalSha(t.Context(), sha, []string{"n"})
	unknown := pipe.EvalSha(t.Context(), strings.Repeat("0", 40), []string{"n"})
	again := pipe.EvalSha(t.Context(), sha, []string{"n"})
	_, _ = pipe.Exec(t.Context()) // each command has its own error
	if known.Val() != int64(1) || again.Val() != int64(2) {
		t.Errorf("the known script gave %v and %v", known, again)
	}
	if err := unknown.Err(); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
		t.Errorf("the unknown script: %v, want NOSCRIPT", err)
	}
}
