package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// Servers change places: names or virtual addresses are moved. At no moment do two addresses lead to one server, though what
// was last seen at another address may be the one that is here now.
func TestRealServersThatChangePlacesAreNotTakenForOne(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	for _, to := range [][]int{{1, 0, 2}, {1, 2, 0}} {
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			t.Parallel()
			m := startMachines(t, 3)
			m.found()
			c, moved := m.movable(func(i int) int { return to[i] })
			mustRelease(t, mustGet(t, c, "stock"))
			moved()
			m.had(c, "stock")
			m.reaches(c)
		})
	}
}

// If they do lead to one server from some day on, this is found out, and so is its end.
func TestRealAddressThatIsMovedToAnotherServerIsFoundOut(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 3)
	m.found()
	var back atomic.Bool
	c, move := m.movable(func(i int) int {
		if back.Load() {
			return i
		}
		return max(i, 1)
	})
	mustRelease(t, mustGet(t, c, "stock"))
	move()
	// The first request may still go out over a connection that is about to end, and have no answer.
	m.eventually("it is found out", func() bool { return errors.Is(c.Ping(t.Context()), quorum.ErrSameServer) })
	_, err := c.TryAcquire(t.Context(), "stock")
	wantIs(t, err, quorum.ErrSameServer)
	back.Store(true)
	move()
	m.had(c, "stock")
}

// Names change places, and of the connections to the old servers one lives on, as nobody ends it. While two seem to be one server they
// are connected to anew.
func TestRealConnectionToAServerThatHasMovedIsGivenUp(t *testing.T) {
	m := startMachines(t, 3)
	m.found()
	to := []int{1, 0, 2}
	c, move := m.movable(func(i int) int { return to[i] })
	mustRelease(t, mustGet(t, c, "stock"))
	move(1)
	m.eventually("it is found out", func() bool { return errors.Is(m.tried(c, "stock"), quorum.ErrSameServer) })
	m.had(c, "stock")
	m.reaches(c)
	m.had(c, "stock")
}

// tried tries to have a lock, and gives it back.
func (m *machines) tried(c *quorum.Coordinator, name string) error {
	m.T.Helper()
	l, err := c.TryAcquire(m.T.Context(), name)
	if err == nil {
		mustRelease(m.T, l)
	}
	return err
}

// had waits until a lock can be had, and gives it back.
func (m *machines) had(c *quorum.Coordinator, name string) {
	m.T.Helper()
	m.eventually("the lock can be had", func() bool { return m.tried(c, name) == nil })
}

// movable returns a client whose addresses lead to the servers, and what makes them lead to others. Connections do not move
// with an address: those to some servers end, or to all if none is named.
func (m *machines) movable(to func(i int) int) (c *quorum.Coordinator, move func(ends ...int)) {
	m.T.Helper()
	var moved atomic.Bool
	var nodes []*node.Node
	for i := range m.Servers {
		n, err := node.New(&redis.Options{
			Addr: fmt.Sprintf("node-%d.test:6379", i),
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				at := i
				if moved.Load() {
					at = to(i)
				}
				return new(net.Dialer).DialContext(ctx, "tcp", m.Servers[at].Addr())
			},
		})
		m.Must(err)
		nodes = append(nodes, n)
	}
	c, err := quorum.New(nodes, quorum.Config{TTL: realTTL, NodeTimeout: realTimeout, Logger: slog.New(slog.NewTextHandler(m.Log, nil))})
	m.Must(err)
	m.T.Cleanup(func() { _ = c.Close() })
	return c, func(ends ...int) {
		m.T.Helper()
		moved.Store(true)
		for i, s := range m.Servers {
			if len(ends) > 0 && !slices.Contains(ends, i) {
				continue
			}
			m.Must(s.Client().Do(m.T.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
		}
	}
}

// go-redis' options bound the connections. Requests wait for one then.
func TestRealFewConnectionsAreShared(t *testing.T) {
	redisserver.Require(t)
	for _, option := range []string{"?pool_size=1", "?max_active_conns=1"} {
		t.Run(option, func(t *testing.T) {
			m := startMachines(t, 3)
			m.found()
			urls := redisserver.URLs(m.Servers)
			for i := range urls {
				urls[i] += option
			}
			c := m.ClientAt(quorum.Config{}, urls)
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					for range 5 {
						mustRelease(t, mustGet(t, c, fmt.Sprint("name ", i)))
					}
				})
			}
			all.Wait()
		})
	}
}
