package simulation

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

// conversation is what is said to a server, command by command.
var conversation = [][]any{
	{"PING"}, {"PING", "hello"},
	{"SET", "s", "1"}, {"GET", "s"}, {"PTTL", "s"}, {"TYPE", "s"}, {"TYPE", "nothing"}, {"PTTL", "nothing"}, {"GET", "nothing"},
	{"SET", "s", "2", "PX", "100000"}, {"SET", "s", "3", "NX"}, {"SET", "s", "3", "PX", "0"}, {"SET", "s", "3", "PX", "x"},
	{"SET", "s", "3", "NONSENSE"}, {"EXISTS", "s", "s", "nothing"}, {"PEXPIRE", "nothing", "10"}, {"PEXPIRE", "s", "x"},
	{"PEXPIRE", "s", "-1"}, {"EXISTS", "s"}, {"DEL", "s", "nothing"},
	{"HSET", "h", "a", "1", "b", "2"}, {"HSET", "h", "a", "3"}, {"HGET", "h", "a"}, {"HGET", "h", "z"}, {"HMGET", "h", "a", "z"},
	{"HEXISTS", "h", "a"}, {"HEXISTS", "h", "z"}, {"HEXISTS", "nothing", "z"}, {"HDEL", "h", "b", "z"}, {"HGETALL", "h"}, {"HLEN", "h"}, {"HLEN", "nothing"}, {"HLEN", "s"}, {"HLEN"},
	{"HGETALL", "nothing"}, {"GET", "h"}, {"HSET", "h", "a"}, {"SET", "s", "text"}, {"HGET", "s", "a"}, {"HGETALL", "s"}, {"TYPE", "h"},
	{"HDEL", "h", "a"}, {"EXISTS", "h"}, {"NONSENSE"}, {"NONSENSE", "a", "b"}, {"GET"}, {"PUBLISH", "nobody", "x"}, {"PUBSUB", "NUMSUB", "nobody"},
	{"CONFIG", "GET", "appendonly"}, {"CONFIG", "GET", "nothing*"}, {"SCRIPT", "EXISTS", "abc"}, {"EVALSHA", "abc", "0"},
	{"EVAL", "return 1.9", "0"}, {"EVAL", "return -1.9", "0"}, {"EVAL", "return nil", "0"}, {"EVAL", "return false", "0"},
	{"EVAL", "return true", "0"}, {"EVAL", "return {1, 'a', {2, nil, 3}, nil, 4}", "0"}, {"EVAL", "return {ok='fine'}", "0"},
	{"EVAL", "return {err='MINE is bad'}", "0"}, {"EVAL", "return redis.error_reply('MINE is bad')", "0"},
	{"EVAL", "return redis.status_reply('fine')", "0"}, {"EVAL", "return redis.sha1hex('x')", "0"},
	{"EVAL", "return {KEYS[1], ARGV[1], #ARGV}", "1", "k", "v", "w"}, {"EVAL", "return 1", "2", "k"}, {"EVAL", "return 1", "x"},
	{"EVAL", "return redis.call('GET', 'nothing') == false", "0"}, {"EVAL", "return redis.call('SET', 'n', 1700000000000000)", "0"},
	{"GET", "n"}, {"EVAL", "return redis.call('GET', 'n') + 1", "0"}, {"EVAL", "return redis.call('HGETALL', 'nothing')", "0"},
	{"EVAL", "return redis.call('SET', 'n', 0.1).ok", "0"}, {"GET", "n"},
	{"EVAL", "\n\nreturn redis.call('HGETALL', 's')", "0"}, {"EVAL", "return redis.pcall('HGETALL', 's').err", "0"},
	{"EVAL", "return redis.pcall('HGETALL', 's')", "0"}, {"EVAL", "\nreturn redis.call('GET')", "0"}, {"EVAL", "return redis.call('NONSENSE')", "0"},
	{"EVAL", "return redis.pcall('NONSENSE').err", "0"}, {"EVAL", "return redis.call('HSET', 'h', 'a')", "0"},
	{"EVAL", "return 1", "-1"},
	{"EVAL", "return redis.call('EXISTS', 's') == 1", "0"}, {"EVAL", "return string.format('%.0f', 2^53 - 1)", "0"},
	{"EVAL", "return math.max(3, tonumber('4'))", "0"}, {"EVAL", "local x = redis.call('TIME') return #x", "0"},
	{"EVAL", "redis.call('SET', KEYS[1], 'x', 'PX', '5000') return redis.call('PTTL', KEYS[1]) > 4000", "1", "p"},
	{"SCRIPT", "LOAD", "return 7"}, {"EVALSHA", "5a5d1a4e1ee2f2a2f1cc3b5bd7ba7bf9f6d6a2ab", "0"}, {"SCRIPT", "FLUSH"}, {"FLUSHALL"}, {"EXISTS", "s"},
}

// talk says it all and returns the answers, errors included.
func talk(dial func(context.Context, string, string) (net.Conn, error)) []string {
	client := redis.NewClient(&redis.Options{
		Addr: "x:1", Dialer: dial, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() { _ = client.Close() }()
	var said []string
	for _, command := range conversation {
		v, err := client.Do(context.Background(), command...).Result()
		said = append(said, fmt.Sprintf("%v: %v, %v", command, v, err))
	}
	return said
}

// simulated runs f in a world of one node and one client.
func simulated(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, New(1, 1, 1, Weather{Latency: time.Millisecond})) })
}

// A node answers what Redis answers, to the letter where a client may look at it.
func TestAnswersAsRedis(t *testing.T) {
	server := redisserver.Start(t)
	want := talk(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Addr())
	})
	var got []string
	simulated(t, func(_ *testing.T, w *World) { got = talk(w.Client(0).Dialer(0)) })
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("Redis      %s\nsimulation %s", want[i], got[i])
		}
	}
}

// The real scripts run, and what they set expires on the node's own clock.
func TestKeysExpireOnTheNodesClock(t *testing.T) {
	simulated(t, func(t *testing.T, w *World) {
		node := w.Node(0)
		node.Skew(2, 0)
		acquire := script.Acquire{Name: "x", Holder: "me", Count: 1, TTL: time.Second, Proposal: 1, Clamp: time.Second}
		if reply, ok := node.script(words(acquire)).([]any); !ok || reply[0] != "granted" {
			t.Fatalf("acquire answers %v", reply)
		}
		time.Sleep(499 * time.Millisecond)
		if keys := w.Keys(0); len(keys) != 2 {
			t.Errorf("after 499 ms there are %v", keys)
		}
		node.Skew(2, 2*time.Millisecond)
		if keys := w.Keys(0); len(keys) != 1 || !strings.HasPrefix(keys[0], "redquorum_fence") {
			t.Errorf("when a second has passed on the node there are %v", keys)
		}
	})
}

// words are what a client sends to run a request, with its source.
func words(r script.Request) (all []string) {
	for _, word := range script.Prepare(r).Command(script.Seal{}, true) {
		all = append(all, word.(string))
	}
	return all
}

func BenchmarkAcquireAndRelease(b *testing.B) {
	w := New(1, 1, 1, Weather{})
	node := w.Node(0)
	acquire := words(script.Acquire{Name: "x", Holder: "me", Count: 1, TTL: time.Second, Proposal: 1, Clamp: time.Second})
	release := words(script.Release{Name: "x", Holder: "me", Payload: script.Free, Token: 1, TTL: time.Second})
	for b.Loop() {
		node.script(acquire)
		node.script(release)
	}
}
