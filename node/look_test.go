package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// look looks, within a time that is enough.
func look(t *testing.T, n *node.Node, name string) (string, int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return n.Look(ctx, name)
}

func wantSeen(t *testing.T, n *node.Node, name, holder string, listeners int) {
	t.Helper()
	h, l, err := look(t, n, name)
	if err != nil || h != holder || l != listeners {
		t.Errorf("saw holder %q and %d listeners, %v; want %q and %d", h, l, err, holder, listeners)
	}
}

func TestLookTellsWhoHasALockAndHowManyListen(t *testing.T) {
	for server, url := range map[string]func(t *testing.T) string{
		"miniredis":    func(t *testing.T) string { return "redis://" + miniredis.RunT(t).Addr() },
		"redis-server": func(t *testing.T) string { return redisserver.Start(t).URL() },
	} {
		t.Run(server, func(t *testing.T) {
			at := url(t)
			n := open(t, at)
			wantSeen(t, n, "a", "", 0)
			must(t, n, lock("a"), script.Granted)
			wantSeen(t, n, "a", "me:1", 0)

			other := open(t, at)
			_, stop := listen(t, n, script.Channel("a"))
			_, stopToo := listen(t, n, script.Channel("a")) // over the same connection
			_, stopOther := listen(t, other, script.Channel("a"))
			defer stop()
			defer stopToo()
			wantSeen(t, n, "a", "me:1", 2)
			wantSeen(t, n, "b", "", 0)
			stopOther()
			eventually(t, "one has gone", func() bool { _, l, err := look(t, n, "a"); return err == nil && l == 1 })

			must(t, n, unlock("a"), script.Released)
			wantSeen(t, n, "a", "", 1)
		})
	}
}

// Nothing of a lock can be read from a key of another type; whoever looks tries, and is told that it is held.
func TestLookAtAKeyOfAnotherTypeIsAnError(t *testing.T) {
	s := redisserver.Start(t)
	if err := s.Client().Set(t.Context(), "a", "data", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, _, err := look(t, open(t, s.URL()), "a")
	wantError(t, err, verdict{refused: true})
}

// Where PUBSUB is not permitted nobody is known to listen, and the holder is told all the same; where HRANDFIELD is not,
// the look is an error.
func TestLookWithoutPermission(t *testing.T) {
	s := redisserver.Start(t)
	for user, rule := range map[string]string{"deaf": "-pubsub", "blind": "-hrandfield"} {
		if err := s.Client().Do(t.Context(), "ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	n := open(t, s.URL())
	must(t, n, lock("a"), script.Granted)
	_, stop := listen(t, n, script.Channel("a"))
	defer stop()
	wantSeen(t, n, "a", "me:1", 1)
	wantSeen(t, open(t, "redis://deaf:pw@"+s.Addr()), "a", "me:1", 0)
	_, _, err := look(t, open(t, "redis://blind:pw@"+s.Addr()), "a")
	wantError(t, err, verdict{refused: true, permanent: true})
}

// A look at a node that hangs ends with its budget, and one at a node that is closed at once.
func TestLookIsBounded(t *testing.T) {
	f := serve(t, func(c []string) string {
		if c[0] == "HRANDFIELD" || c[0] == "PUBSUB" {
			return hang
		}
		return ""
	})
	n := open(t, f.url())
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	defer cancel()
	_, _, err := n.Look(ctx, "a")
	wantError(t, err, verdict{timeout: true})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := look(t, n, "a"); !errors.Is(err, node.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// An application's hash of many fields, or with a long value, may be too large for a reply. It must not cost the requests of
// everybody else the connection.
func TestLookAtAnApplicationsHashKeepsTheConnection(t *testing.T) {
	c := redisserver.Start(t)
	n := open(t, c.URL())
	must(t, n, lock("a"), script.Granted)
	const chunk = 10_000
	for i := range 53 {
		fields := make([]string, 0, 2*chunk)
		for j := range chunk {
			fields = append(fields, fmt.Sprint(i*chunk+j), "1")
		}
		if err := c.Client().HSet(t.Context(), "many", fields).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Client().HSet(t.Context(), "long", "f", strings.Repeat("x", 1<<20+1)).Err(); err != nil {
		t.Fatal(err)
	}
	connections := func() string {
		_, stats, _ := strings.Cut(c.Client().Info(t.Context(), "stats").Val(), "total_connections_received:")
		count, _, _ := strings.Cut(stats, "\r\n")
		return count
	}
	before := connections()
	_, _, err := look(t, n, "many")
	wantError(t, err, verdict{refused: true})
	wantSeen(t, n, "long", "f", 0)
	must(t, n, unlock("a"), script.Released)
	if after := connections(); after != before {
		t.Errorf("%s connections before, %s after", before, after)
	}
}
