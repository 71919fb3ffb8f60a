package peers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/bench/internal/peers"
	"github.com/redquorum/redquorum/internal/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPeersLock(t *testing.T) {
	urls := redisserver.URLs(redisserver.StartN(t, 5))
	for _, p := range peers.All() {
		t.Run(p.Name, func(t *testing.T) {
			ctx := t.Context()
			locker, err := p.Open(ctx, urls, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := locker.Close(); err != nil {
					t.Error(err)
				}
			}()
			for range 3 {
				l, err := locker.Lock(ctx, "name-"+p.Name)
				if err != nil {
					t.Fatal(err)
				}
				if !p.NoLock {
					soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					_, err := locker.Lock(soon, "name-"+p.Name)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a second holder: %v", err)
					}
				}
				if err := l.Release(ctx); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSelect(t *testing.T) {
	some, err := peers.Select("floor, redquorum")
	if err != nil || len(some) != 2 || some[0].Name != "redquorum" || some[1].Name != "floor" {
		t.Errorf("%v, %v", some, err)
	}
	if all, err := peers.Select(""); err != nil || len(all) != len(peers.All()) {
		t.Errorf("%d peers, %v", len(all), err)
	}
	if _, err := peers.Select("redsink"); err == nil || err.Error() !=
		`peer "redsink" is unknown: want some of redquorum,redsync,rueidislock,rueidislock-5,redislock,floor` {
		t.Error(err)
	}
}
