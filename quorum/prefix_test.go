package quorum_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/script"
)

// keys are what is stored on node i, but for its record.
func (cl *cluster) keys(i int) []string {
	return slices.DeleteFunc(cl.nodes[i].Redis().Keys(), func(key string) bool { return key == script.RecordKey })
}

func TestOtherPrefixesAreOtherLocks(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		ctx := t.Context()
		shop, stall, bare := cl.client(quorum.Config{Prefix: "shop:"}), cl.client(quorum.Config{Prefix: "{stall}:"}), cl.client(quorum.Config{})
		ours := mustAcquire(t, shop, ctx, "stock")
		for _, c := range []*quorum.Coordinator{stall, bare} {
			if s, err := c.Inspect(ctx, "stock"); err != nil || s.Verdict != quorum.VerdictFree || s.Token != 0 {
				t.Errorf("others see %+v, %v", s, err)
			}
			theirs := mustAcquire(t, c, ctx, "stock")
			if freed, err := c.ForceRelease(ctx, "stock"); err != nil || !freed {
				t.Errorf("%v, %v", freed, err)
			}
			wantIs(t, theirs.Renew(ctx), quorum.ErrLost)
		}
		if err := ours.Renew(ctx); err != nil {
			t.Errorf("after what others did: %v", err)
		}
		// Who uses the whole name without a prefix, as Redisson does, is in the same line.
		_, err := bare.TryAcquire(ctx, "shop:stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		mustRelease(t, ours)
		mustRelease(t, mustAcquire(t, bare, ctx, "shop:stock"))
	})
}

// Whatever a lock needs on a node has the prefix, in all that happens to a lock.
func TestEverythingOfALockHasThePrefix(t *testing.T) {
	for prefix, want := range map[string][]string{
		"shop:":   {"redquorum_fence:{shop:stock}", "redquorum_revoked:{shop:stock}"},
		"{shop}:": {"redquorum_fence:{{shop}:stock}", "redquorum_revoked:{{shop}:stock}"},
	} {
		inBubble(t, 3, func(t *testing.T, cl *cluster) {
			ctx := t.Context()
			heard := cl.ear(0, prefix+"stock")
			c, other := cl.client(quorum.Config{Prefix: prefix}), cl.client(quorum.Config{Prefix: prefix})
			if err := c.Ping(ctx); err != nil {
				t.Fatal(err)
			}
			cl.nodes[0].Redis().HSet(prefix+"stock", "somebody:1", "1") // a node that has to be healed
			l := mustAcquire(t, c, ctx, "stock")
			cl.nodes[0].Redis().Del(prefix + "stock")
			time.Sleep(ttl) // renewed, and restored
			if n := cl.present(prefix + "stock"); n != 3 {
				t.Errorf("%d nodes have it", n)
			}
			next := make(chan *quorum.Lease)
			go func() {
				l, err := other.Acquire(ctx, "stock")
				if err != nil {
					t.Error(err)
				}
				next <- l
			}()
			synctest.Wait()
			time.Sleep(time.Second) // it listens
			start := time.Now()
			mustRelease(t, l)
			l = <-next
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("woken after %v", took)
			}
			if got := <-heard; got != script.Free {
				t.Errorf("heard %q", got)
			}
			if _, err := c.ForceRelease(ctx, "stock"); err != nil {
				t.Error(err)
			}
			for i := range cl.nodes {
				if keys := cl.keys(i); !slices.Equal(keys, want) {
					t.Errorf("node %d stores %q, want %q", i, keys, want)
				}
			}
			wantIs(t, l.Renew(ctx), quorum.ErrLost)
		})
	}
}

// The prefix is the operator's affair: a caller is told the name that he gave.
func TestCallersSeeNamesWithoutThePrefix(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		ctx := t.Context()
		c := cl.client(quorum.Config{Prefix: "hidden:"})
		l := mustAcquire(t, c, ctx, "stock")
		if l.Name() != "stock" {
			t.Errorf("the lease's name is %q", l.Name())
		}
		s, err := c.Inspect(ctx, "stock")
		if err != nil || s.Name != "stock" || s.Holder != l.Holder() {
			t.Errorf("%+v, %v", s, err)
		}
		_, err = c.TryAcquire(ctx, "stock")
		wantIs(t, err, quorum.ErrNotAcquired)
		told := err.Error()
		for _, n := range cl.nodes {
			n.Redis().Del("hidden:stock")
			n.Redis().HSet("hidden:stock", "somebody:1", "1")
		}
		err = l.Renew(ctx)
		wantIs(t, err, quorum.ErrLost)
		told += err.Error() + cl.log.String()
		if !strings.Contains(told, "stock") || strings.Contains(told, "hidden") {
			t.Errorf("told: %s", told)
		}
		for _, n := range cl.nodes {
			n.Redis().Del("hidden:stock")
		}
	})
}

// What is no name without a prefix, since the nodes keep something there, is one behind it.
func TestReservedNamesAreAnyNamesBehindAPrefix(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{Prefix: "shop:"})
		for _, name := range []string{script.RecordKey, script.FenceKey("stock"), script.RevokedKey("stock")} {
			mustRelease(t, mustAcquire(t, c, context.Background(), name))
		}
		if _, err := c.TryAcquire(t.Context(), ""); err == nil || !contains(err.Error(), "name is empty") {
			t.Errorf("the prefix alone is no name: %v", err)
		}
	})
}

func TestACLOfAnInvalidPrefix(t *testing.T) {
	for prefix, why := range map[string]string{"*": "none of *?[]", "a b": "no space", "redquorum_": "want another one"} {
		if rules, err := quorum.ACL(prefix); err == nil || !contains(err.Error(), why) || rules != nil {
			t.Errorf("%q: %q, %v", prefix, rules, err)
		}
	}
}

// A node that refuses its messages is no node that can do all that locks need.
func TestPingTriesToListen(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		for _, n := range cl.nodes[:2] {
			n.Redis().Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
				if command == "SUBSCRIBE" {
					p.WriteError("NOPERM this user has no permissions to access one of the channels used as arguments")
				}
				return command == "SUBSCRIBE"
			})
		}
		err := c.Ping(t.Context())
		wantIs(t, err, quorum.ErrNoQuorum)
		if !contains(err.Error(), cl.nodes[0].Addr()+" failed: NOPERM", `["redisson_lock__channel:{redquorum_ping:`, cl.nodes[2].Addr()+" granted") {
			t.Error(err)
		}
		cl.nodes[1].Redis().Server().SetPreHook(nil)
		if err := c.Ping(t.Context()); err != nil || !contains(cl.log.String(), "NOPERM", cl.nodes[0].Addr()) {
			t.Errorf("a quorum can: %v; logged %s", err, cl.log)
		}
	})
}
