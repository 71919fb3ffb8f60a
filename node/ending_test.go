package node_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/faultnet"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// ending is a connection whose last bytes and its end come from one Read, as with TLS.
type ending struct {
	net.Conn
	over *atomic.Bool
}

func (e ending) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	if e.over.Load() && err == nil {
		err = io.EOF
	}
	return n, err
}

func TestAnswerThatComesWithTheEndOfTheConnectionCounts(t *testing.T) {
	f := serve(t, on("EVALSHA", granted()))
	var over atomic.Bool
	n := with(t, &redis.Options{Addr: f.Addr().String(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return ending{conn, &over}, err
	}})
	must(t, n, lock("a"), script.Granted)
	over.Store(true)
	must(t, n, lock("b"), script.Granted)
}

// A call that has all the time there is does not keep others from a better connection.
func TestCallWithoutADeadlineKeepsNoConnectionThatHangs(t *testing.T) {
	inStream(t, 2, func(t *testing.T, server *faultnet.Node, n *node.Node) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		patient := make(chan error, 1)
		server.HoldConnections()
		go func() {
			_, err := n.Run(ctx, lock("patient"), clock.Instant{})
			patient <- err
		}()
		time.Sleep(time.Millisecond)
		timesOut(t, n, 100*time.Millisecond, verdict{sent: true, timeout: true})
		must(t, n, lock("next"), script.Granted) // over another one
		if err := <-patient; !errors.Is(err, node.ErrTimeout) {
			t.Errorf("got %v, want that it was given up with its connection", err)
		}
		server.Resume()
	})
}
