package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// hear subscribes over one connection until it breaks, or nobody has listened for a heartbeat or two: who waits for a lock
// that goes back and forth listens again soon, and shall find the connection there. It reports whether anything was ever
// heard on it, and whether it broke.
//
// A subscription has our own heartbeat: go-redis would not notice a server that has stopped.
func (n *Node) hear(budget time.Duration) (heard, broke bool) {
	s := &subscription{node: n, budget: budget, broken: make(chan struct{})}
	var hangUp func()
	s.pubsub, hangUp = n.subscriber()
	defer func() {
		hangUp()           // ends receive
		_ = s.group.Wait() // returns no error
		if s.refused != nil {
			n.listening.tellAll(Event{Err: n.refusal(s.refused, n.listening.names()...)})
		}
	}()

	if !s.follow() {
		return false, true
	}
	if n.listening.following() == 0 {
		return false, false
	}
	s.group.Go(s.receive)

	heartbeat := time.NewTicker(budget)
	defer heartbeat.Stop()
	for idle := 0; ; {
		select {
		case <-s.broken:
			return s.heard.Load(), true
		case <-n.listening.changed:
			if n.listening.following() == 0 && n.listening.beat() != budget {
				return s.heard.Load(), false // whoever comes now has another one
			}
			if !s.follow() {
				return s.heard.Load(), true
			}
		case <-heartbeat.C:
			if !s.alive() {
				return s.heard.Load(), true
			}
			heartbeat.Reset(budget) // the answer has as long, even where this goroutine was kept from running
			idle++
		}
		switch {
		case n.listening.following() > 0:
			idle = 0
		case idle > 1 || n.listening.over():
			return s.heard.Load(), false
		}
	}
}

// subscriber returns a connection for subscriptions, and how to end it.
//
// go-redis would reconnect by itself, without a deadline and without telling what it missed. So every such connection gets a
// client of its own, which may dial once.
func (n *Node) subscriber() (pubsub *redis.PubSub, hangUp func()) {
	opts := *n.opts
	opts.PoolSize = 1
	opts.Dialer = dialOnce(opts.Dialer)
	client := redis.NewClient(&opts)
	pubsub = client.Subscribe(context.Background())
	return pubsub, func() {
		_ = pubsub.Close()
		_ = client.Close() // nothing is under way
	}
}

// subscription is one connection that listens.
type subscription struct {
	node   *Node
	pubsub *redis.PubSub
	budget time.Duration
	group  errgroup.Group
	broken chan struct{} // closed when receiving failed

	refused error // why it failed, if the server would not have it; read when receiving is over

	heard  atomic.Bool // something arrived, ever
	recent atomic.Bool // something arrived since the last heartbeat
}

// mostChannels is how many channels one command names: a few dozen kilobytes. Each command has a node timeout, and a connection that
// comes back may have to name a hundred thousand.
const mostChannels = 1000

// follow brings the subscribed channels in line with those that somebody listens to.
func (s *subscription) follow() bool {
	more, less := s.node.listening.news()
	return s.send(s.pubsub.Subscribe, more) && s.send(s.pubsub.Unsubscribe, less)
}

// send sends a command for channels, as many at a time as it may name.
func (s *subscription) send(command func(context.Context, ...string) error, channels []string) bool {
	for part := range slices.Chunk(channels, mostChannels) {
		ctx, cancel := context.WithTimeout(context.Background(), s.budget)
		err := command(ctx, part...)
		cancel()
		if err != nil {
			return false
		}
	}
	return true
}

// alive sends a ping, unless the last one has gone unanswered. A connection that dies right after it has answered one is then
// noticed with the next but one.
func (s *subscription) alive() bool {
	if !s.recent.Swap(false) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.budget)
	defer cancel()
	return s.pubsub.Ping(ctx) == nil
}

// receive passes on what arrives, until the connection breaks.
func (s *subscription) receive() error {
	defer close(s.broken)
	for {
		msg, err := s.pubsub.Receive(context.Background())
		var answer redis.Error
		if errors.As(err, &answer) {
			s.refused = err
		}
		if err != nil {
			return nil
		}
		s.heard.Store(true)
		s.recent.Store(true)
		switch msg := msg.(type) {
		case *redis.Subscription:
			if msg.Kind == "subscribe" {
				s.node.listening.confirmation(msg.Channel)
			}
		case *redis.Message:
			s.node.listening.tell(msg.Channel, Event{Payload: msg.Payload})
		}
	}
}

// dialOnce lets a client connect once.
func dialOnce(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	var dialled atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			// An error here would make go-redis complain on standard error; a connection that fails does not.
			return newLateConn(func(context.Context) (net.Conn, error) { return nil, errOnce }), nil
		}
		return dial(ctx, network, addr)
	}
}

var errOnce = errors.New("node: a subscription does not reconnect by itself")
