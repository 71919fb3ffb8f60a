package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// cutting is a connection of which a write fails after some bytes, once.
type cutting struct {
	net.Conn
	after *atomic.Int64 // how many bytes; negative: it does not
}

func (c cutting) Write(p []byte) (int, error) {
	if after := c.after.Swap(-1); after >= 0 {
		n, err := c.Conn.Write(p[:min(int(after), len(p)-1)]) // of a whole request the answer might come first
		return n, errors.Join(err, errors.New("the connection broke"))
	}
	return c.Conn.Write(p)
}

// A request that was not written at all goes out over the next connection. One that was written in part may have taken effect:
// nobody can tell how much of it the server got, and it is not sent again.
func TestRequestThatWasWrittenInPartIsNotSentAgain(t *testing.T) {
	m := miniredis.RunT(t)
	for _, tt := range []struct {
		after int64
		again bool
	}{{0, true}, {1, false}, {100, false}, {1 << 20, false}} {
		t.Run(fmt.Sprint(tt.after, " bytes"), func(t *testing.T) {
			m.FlushAll()
			cut := &atomic.Int64{}
			cut.Store(-1)
			n := with(t, &redis.Options{Addr: m.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return cutting{conn, cut}, err
			}})
			must(t, n, lock("warm"), script.Granted)
			cut.Store(tt.after)
			got, err := ask(n, lock("stock"), patience)
			if tt.again {
				if err != nil || got.Status != script.Granted {
					t.Errorf("%+v, %v, want it sent again", got, err)
				}
				return
			}
			wantError(t, err, verdict{sent: true})
			if err != nil && !strings.Contains(err.Error(), "the connection broke") {
				t.Errorf("%v does not say why", err)
			}
			// A request in between shows that nothing is on its way any more.
			must(t, n, lock("next"), script.Granted)
			if m.Exists("stock") {
				t.Error("it was sent again")
			}
		})
	}
}
