package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

const someone = "01234567-89ab-cdef-0123-456789abcdef:1"

// scan looks for all locks whose names match.
func scan(t *testing.T, n *node.Node, pattern string) (found []string, all bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err = n.Scan(ctx, pattern, patience, func(names []string) bool {
		found = append(found, names...)
		return true
	})
	slices.Sort(found)
	return slices.Compact(found), all, err
}

func wantFound(t *testing.T, n *node.Node, pattern string, want ...string) {
	t.Helper()
	got, all, err := scan(t, n, pattern)
	if err != nil || !all || !slices.Equal(got, want) {
		t.Errorf("%s: found %q, all %v, %v; want %q", pattern, got, all, err, want)
	}
}

// fill puts keys on a server of which two are locks.
func fill(t *testing.T, addr string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	pipe, ctx := c.Pipeline(), t.Context()
	pipe.HSet(ctx, "stock", someone, 1)
	pipe.HSet(ctx, "stock room", someone, 2)
	pipe.HSet(ctx, "stocks of a broker", "ACME", 17)
	pipe.HSet(ctx, "stocktaking", "mode", "read", someone, 1)
	pipe.HSet(ctx, script.RecordKey, someone, 1)
	pipe.HSet(ctx, script.FenceKey("stock"), someone, 1)
	pipe.Set(ctx, "stockpile", someone, 0)
	pipe.HSet(ctx, "flour", someone, 1)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestScanFindsLocksAndNothingElse(t *testing.T) {
	for server, addr := range map[string]func(t *testing.T) string{
		"miniredis":    func(t *testing.T) string { return miniredis.RunT(t).Addr() },
		"redis-server": func(t *testing.T) string { return redisserver.Start(t).Addr() },
	} {
		t.Run(server, func(t *testing.T) {
			at := addr(t)
			fill(t, at)
			n := open(t, "redis://"+at)
			wantFound(t, n, "*", "flour", "stock", "stock room")
			wantFound(t, n, "stock*", "stock", "stock room")
			wantFound(t, n, "st[oa]ck", "stock")
			wantFound(t, n, "bread")
		})
	}
}

// calls are how often a server was told a command.
func calls(t *testing.T, s *redisserver.Server, command string) (n int) {
	t.Helper()
	text, err := s.Client().Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if _, after, ok := strings.Cut(text, "cmdstat_"+command+":calls="); ok {
		_, _ = fmt.Sscanf(after, "%d", &n)
	}
	return n
}

// A server with many keys is asked for some at a time, may be left in between, and is never asked what is in keys that are
// no locks.
func TestScanGoesInSmallSteps(t *testing.T) {
	s := redisserver.Start(t)
	const locks, others = 500, 5000
	pipe := s.Client().Pipeline()
	for i := range locks {
		pipe.HSet(t.Context(), fmt.Sprint("lock ", i), someone, 1)
	}
	for i := range others {
		pipe.HSet(t.Context(), fmt.Sprint("other ", i), "a", 1, "b", 2)
		pipe.Set(t.Context(), fmt.Sprint("text ", i), someone, 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := open(t, s.URL())
	if got, all, err := scan(t, n, "*"); len(got) != locks || !all || err != nil {
		t.Errorf("found %d, all %v, %v; want %d", len(got), all, err, locks)
	}
	if n := calls(t, s, "scan"); n < (locks+2*others)/500 {
		t.Errorf("%d keys in %d steps", locks+2*others, n)
	}
	if keys, asked := calls(t, s, "keys"), calls(t, s, "hkeys"); keys > 0 || asked > locks+locks/10 {
		t.Errorf("KEYS was sent %d times, and %d keys were asked what is in them, of which %d are locks", keys, asked, locks)
	}
	before, steps := calls(t, s, "scan"), 0
	all, err := n.Scan(t.Context(), "*", patience, func([]string) bool { steps++; return steps < 3 })
	if sent := calls(t, s, "scan") - before; all || err != nil || steps != 3 || sent != 3 {
		t.Errorf("all %v, %v, after %d steps and %d requests; want to be left after 3", all, err, steps, sent)
	}
}

// It goes on for as long as there are keys, and not longer than its context.
func TestScanEndsWithItsContext(t *testing.T) {
	f := serve(t, on("scan", "*2\r\n$1\r\n7\r\n*0\r\n"))
	n := open(t, f.url())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := 0
	all, err := n.Scan(ctx, "*", patience, func([]string) bool {
		if steps++; steps == 3 {
			cancel()
		}
		return true
	})
	if all || err != nil || steps != 3 {
		t.Errorf("all %v, %v after %d steps", all, err, steps)
	}
}

// A node that hangs has its budget for a step, and the rest of the time is the others'.
func TestScanOfANodeThatHangsEndsWithItsBudget(t *testing.T) {
	n := open(t, serve(t, on("scan", hang)).url())
	_, err := n.Scan(t.Context(), "*", budget, func([]string) bool { return true })
	wantError(t, err, verdict{timeout: true})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := scan(t, n, "*"); !errors.Is(err, node.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Keys that a user may not read are none of its own; commands that it may not run are an error.
func TestScanWithoutPermission(t *testing.T) {
	s := redisserver.Start(t)
	fill(t, s.Addr())
	as := func(user string, rules ...any) *node.Node {
		if err := s.Client().Do(t.Context(), append([]any{"ACL", "SETUSER", user, "on", ">pw"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
		return open(t, "redis://"+user+":pw@"+s.Addr())
	}
	wantFound(t, as("confined", "~stock*", "+@all"), "*", "stock", "stock room")
	for _, command := range []string{"scan", "hlen", "hkeys"} {
		_, _, err := scan(t, as("no"+command, "~*", "+@all", "-"+command), "*")
		wantError(t, err, verdict{refused: true, permanent: true})
	}
}
