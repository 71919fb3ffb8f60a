package script_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

// closing stops the server that the tests share when they are over.
type closing struct{ *testing.M }

func (m closing) Run() int {
	code := m.M.Run()
	if shared.server != nil {
		shared.server.Close()
	}
	return code
}

// shared is a real server for all tests that leave its settings alone. To start one for each would take most of the time.
var shared struct {
	once   sync.Once
	server *redisserver.Server
	err    error
}

// empty is the shared server, without data and scripts.
func empty(t *testing.T) *redis.Client {
	t.Helper()
	redisserver.Require(t)
	shared.once.Do(func() { shared.server, shared.err = redisserver.Launch(redisserver.Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	c := shared.server.Client()
	must(t, c.FlushAll(t.Context()))
	must(t, c.ScriptFlush(t.Context()))
	return c
}

const (
	name = "order:42"
	us   = "0ab9c6f8-6a6e-4c86-a2c5-f1d3a3f5c1a1:1"
	them = "7f3b2f0e-58f5-4d35-9b0a-6d2b8f7c9e10:1"

	ttl = 30 * time.Second
	day = 24 * time.Hour

	// noon is what the node's clock shows where a test says so, in microseconds: a number that Lua's own formatting
	// would cut short.
	noon  int64 = 1_795_262_400_123_457
	clamp       = 7500 * time.Millisecond
)

// onBoth runs a test on a miniredis and on a real server. Where there is no real one, only that half is skipped.
func onBoth(t *testing.T, test func(t *testing.T, c *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		c := redis.NewClient(&redis.Options{
			Addr:                     m.Addr(),
			DisableIdentity:          true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = c.Close() })
		test(t, c)
	})
	t.Run("redis-server", func(t *testing.T) { test(t, empty(t)) })
}

// send runs a script as it is.
func send(ctx context.Context, c *redis.Client, req script.Request, last int64) (script.Reply, error) {
	keys, args := sealed(req, script.Seal{Last: last})
	v, err := c.Eval(ctx, req.Script().Source, keys, args...).Result()
	if err != nil {
		return script.Reply{}, err
	}
	return script.ParseReply(v)
}

// sealed are the keys and arguments of a request.
func sealed(req script.Request, seal script.Seal) (keys []string, args []any) {
	args = script.Prepare(req).Command(seal, false)[2:] // behind the name
	count, args := args[0], args[1:]
	for fmt.Sprint(len(keys)) != count {
		keys, args = append(keys, args[0].(string)), args[1:]
	}
	return keys, args
}

// run runs a script that has no last moment, and has to work.
func run(t *testing.T, c *redis.Client, req script.Request) script.Reply {
	t.Helper()
	reply, err := send(t.Context(), c, req, 0)
	if err != nil {
		t.Fatalf("%s: %v", req.Script().Name, err)
	}
	return reply
}

// runAt runs a script on a node whose clock shows now.
func runAt(t *testing.T, c *redis.Client, now int64, req script.Request, last int64) script.Reply {
	t.Helper()
	return sealedAt(t, c, now, req, script.Seal{Last: last})
}

// sealedAt is runAt for a request that is tied to an incarnation of the node, too.
func sealedAt(t *testing.T, c *redis.Client, now int64, req script.Request, seal script.Seal) script.Reply {
	t.Helper()
	v, err := evalAt(t, c, now, req, seal)
	if err != nil {
		t.Fatalf("%s: %v", req.Script().Name, err)
	}
	reply, err := script.ParseReply(v)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// evalAt sends a script to a node whose clock shows now. A real server's clock cannot be stopped, so the clock is
// replaced in the source; the arithmetic stays the server's.
func evalAt(t *testing.T, c *redis.Client, now int64, req script.Request, seal script.Seal) (any, error) {
	t.Helper()
	const ask = "redis.call('TIME')"
	source := req.Script().Source
	if strings.Count(source, ask) != 1 {
		t.Fatalf("%s asks for the time %d times, want once", req.Script().Name, strings.Count(source, ask))
	}
	source = strings.Replace(source, ask, fmt.Sprintf("{'%d', '%d'}", now/1e6, now%1e6), 1)
	keys, args := sealed(req, seal)
	return c.Eval(t.Context(), source, keys, args...).Result()
}

// must is for commands by which a test prepares or looks at the server.
func must[T any](t *testing.T, cmd interface{ Result() (T, error) }) T {
	t.Helper()
	v, err := cmd.Result()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// lock puts a lock there, as another party would. A TTL of 0 means none.
func lock(t *testing.T, c *redis.Client, holder string, count int, ttl time.Duration) {
	t.Helper()
	must(t, c.HSet(t.Context(), name, holder, count))
	if ttl > 0 {
		must(t, c.PExpire(t.Context(), name, ttl))
	} else {
		must(t, c.Persist(t.Context(), name))
	}
}

// fence returns the stored fence as it is written, "" if there is none.
func fence(t *testing.T, c *redis.Client) string {
	t.Helper()
	s, err := c.Get(t.Context(), script.FenceKey(name)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return s
}

// dump is everything that a server stores, but for how long.
func dump(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range must(t, c.Keys(t.Context(), "*")) {
		switch kind := must(t, c.Type(t.Context(), key)); kind {
		case "string":
			all[key] = must(t, c.Get(t.Context(), key))
		case "hash":
			all[key] = fmt.Sprint(must(t, c.HGetAll(t.Context(), key)))
		default:
			all[key] = kind
		}
	}
	return all
}

// unchanged runs f, which must change nothing.
func unchanged(t *testing.T, c *redis.Client, f func()) {
	t.Helper()
	before, lives := dump(t, c), ttls(t, c)
	f()
	if after := dump(t, c); !maps.Equal(before, after) {
		t.Errorf("changed %v to %v", before, after)
	}
	for key, after := range ttls(t, c) {
		// A request that is sent twice may set the same TTL twice.
		if before := lives[key]; !about(min(before, after), max(before, after)) {
			t.Errorf("changed the TTL of %s from %v to %v", key, before, after)
		}
	}
}

func ttls(t *testing.T, c *redis.Client) map[string]time.Duration {
	t.Helper()
	all := map[string]time.Duration{}
	for _, key := range must(t, c.Keys(t.Context(), "*")) {
		all[key] = must(t, c.PTTL(t.Context(), key))
	}
	return all
}

// about allows for the time that passes on a real server.
func about(got, want time.Duration) bool { return got <= want && got > want-5*time.Second }

func wantTTL(t *testing.T, c *redis.Client, key string, want time.Duration) {
	t.Helper()
	if got := must(t, c.PTTL(t.Context(), key)); !about(got, want) {
		t.Errorf("%s lives %v, want %v", key, got, want)
	}
}

func wantStatus(t *testing.T, got script.Reply, want script.Status) {
	t.Helper()
	if got.Status != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func wantHash(t *testing.T, c *redis.Client, want map[string]string) {
	t.Helper()
	if got := must(t, c.HGetAll(t.Context(), name)); !maps.Equal(got, want) {
		t.Errorf("the lock is %v, want %v", got, want)
	}
}

// anAcquire, aRenewal and so on are requests of us with nothing special about them.
var (
	anAcquire = script.Acquire{Name: name, Holder: us, Count: 1, TTL: ttl, Proposal: noon, Clamp: clamp}
	aRenewal  = script.Renew{Name: name, Holder: us, Count: 1, TTL: ttl, Token: noon}
	aRaise    = script.Raise{Name: name, Holder: us, Token: noon, TTL: ttl}
	aRelease  = script.Release{Name: name, Holder: us, Payload: script.Free, Token: noon, TTL: ttl}
	aRollback = script.Release{Name: name, Holder: us, Payload: script.RolledBack, TTL: ttl}
	aRevoke   = script.Revoke{Name: name, Holders: []string{us}, Lives: ttl}
	aForce    = script.ForceRelease{Name: name, Holders: []string{us}}
	aLook     = script.Inspect{Name: name}
	aProbe    = script.Probe{Name: "scratch"}
	aCheck    = script.Check{Fresh: "one", TTL: ttl, Nodes: 5}
	aRuling   = script.Settle{Incarnation: "one", TTL: ttl, Nodes: 5, Durable: script.NotDurable}
)

// everyRequest is one of each that is about a lock, and aboutNodes of each that is about the node itself.
var (
	everyRequest = []script.Request{anAcquire, aRenewal, aRaise, aRelease, aRollback, aRevoke, aForce, aLook, aProbe}
	aboutNodes   = []script.Request{aCheck, aRuling}
)

// others are the ways in which a lock is not ours.
var others = []struct {
	title  string
	put    func(t *testing.T, c *redis.Client)
	holder string
	count  int
	ttl    time.Duration
}{
	{"another holder", func(t *testing.T, c *redis.Client) { lock(t, c, them, 3, time.Hour) }, them, 3, time.Hour},
	{"a holder that we are a prefix of", func(t *testing.T, c *redis.Client) { lock(t, c, us+"0", 1, time.Hour) }, us + "0", 1, time.Hour},
	{"a holder that is a prefix of us", func(t *testing.T, c *redis.Client) { lock(t, c, us[:8], 1, time.Hour) }, us[:8], 1, time.Hour},
	{"a holder without an end", func(t *testing.T, c *redis.Client) { lock(t, c, them, 1, 0) }, them, 1, script.NoExpiry},
	{"a hash that is no lock", func(t *testing.T, c *redis.Client) {
		must(t, c.HSet(t.Context(), name, "colour", "blue"))
	}, "colour", 0, script.NoExpiry},
	{"a string", func(t *testing.T, c *redis.Client) {
		must(t, c.Set(t.Context(), name, us, time.Hour))
	}, "", 0, time.Hour},
	{"a list without an end", func(t *testing.T, c *redis.Client) { must(t, c.RPush(t.Context(), name, us)) }, "", 0, script.NoExpiry},
	{"a set", func(t *testing.T, c *redis.Client) {
		must(t, c.SAdd(t.Context(), name, us))
		must(t, c.PExpire(t.Context(), name, time.Minute))
	}, "", 0, time.Minute},
	{"a sorted set", func(t *testing.T, c *redis.Client) {
		must(t, c.ZAdd(t.Context(), name, redis.Z{Member: us}))
	}, "", 0, script.NoExpiry},
}

// refusesOthers checks that a request changes nothing where the lock is somebody else's, and says whose it is.
func refusesOthers(t *testing.T, req script.Request) {
	t.Helper()
	for _, o := range others {
		t.Run(o.title, func(t *testing.T) {
			onBoth(t, func(t *testing.T, c *redis.Client) {
				o.put(t, c)
				must(t, c.Set(t.Context(), script.FenceKey(name), noon, day))
				unchanged(t, c, func() {
					got := run(t, c, req)
					if got.Status != script.Held || got.Holder != o.holder || got.Count != o.count || !about(got.TTL, o.ttl) {
						t.Errorf("got %+v, want held by %q with %d for %v", got, o.holder, o.count, o.ttl)
					}
				})
			})
		})
	}
}
