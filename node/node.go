package node

import (
	"context"
	"net"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/clock"
)

// A Node is one independent Redis master. It is safe for concurrent use. The zero value is not usable; call [Open] or
// [New].
type Node struct {
	name   string
	addr   string
	opts   *redis.Options
	client *redis.Client
	clock  clock.Clock
	offset offset
	guard  guard
	stream stream
	dial   dialFunc

	listening listeners

	closed  atomic.Bool
	closing sync.Once
}

// Open returns the node at a URL: redis://[user:password@]host:port[/db], rediss:// for TLS, unix:// for a socket,
// with go-redis' query options. It does no I/O. An error names what is wrong, and never contains the credentials.
func Open(rawURL string, options ...Option) (*Node, error) {
	opts, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return New(opts, options...)
}

// New returns the node that opts describe. The options are copied and hardened for locks: timeouts and retries of
// their own have no effect, since every request has one budget, its context's. It does no I/O.
func New(opts *redis.Options, options ...Option) (*Node, error) {
	if err := validate(opts); err != nil {
		return nil, err
	}
	n := &Node{clock: clock.System(), name: name(opts), addr: address(opts)}
	n.stream.node, n.stream.most = n, defaultBatches
	for _, option := range options {
		option(n)
	}
	n.opts = n.harden(opts)

	main := *n.opts
	main.OnConnect = n.onConnect(opts.OnConnect)
	n.client = redis.NewClient(&main)
	n.listening.node = n
	return n, nil
}

// Name names the node in votes, errors and logs: its host and port or socket, and the database if it is not 0.
func (n *Node) Name() string { return n.name }

// Address tells servers apart: two nodes with one address are one server, whatever their databases.
func (n *Node) Address() string { return n.addr }

// Clock is the clock on which the Node measures time.
func (n *Node) Clock() clock.Clock { return n.clock }

// onConnect greets the node on every connection that go-redis makes.
func (n *Node) onConnect(users func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, conn *redis.Conn) error {
		if users != nil {
			if err := users(ctx, conn); err != nil {
				return err
			}
		}
		return n.greet(ctx, conn)
	}
}

// greet learns the node's clock, and checks that it is the node it was, before the first script runs on a connection: a
// connection that had to be made anew may mean a server that was restarted, or whose clock was set.
func (n *Node) greet(ctx context.Context, conn *redis.Conn) error {
	if n.guard.on {
		return n.checkNew(ctx, conn) // learns the clock, too
	}
	sent := n.clock.Now()
	now, err := conn.Time(ctx).Result()
	if err != nil {
		return err
	}
	n.offset.learn(now.UnixMicro(), sent, n.clock.Now())
	return nil
}

// Close ends the node's connections and subscriptions and joins their goroutines. Calls under way fail. It is
// idempotent.
func (n *Node) Close() error {
	var err error
	n.closing.Do(func() {
		n.closed.Store(true)
		n.stream.close()
		n.listening.close()
		err = n.client.Close()
	})
	return err
}

// name writes a node's name.
func name(opts *redis.Options) string {
	if opts.DB == 0 {
		return opts.Addr
	}
	return opts.Addr + "/" + strconv.Itoa(opts.DB)
}

// address normalises an address as far as that goes without asking a name server.
func address(opts *redis.Options) string {
	if network(opts) == "unix" {
		return "unix:" + path.Clean(opts.Addr)
	}
	host, port, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		host, port = opts.Addr, "6379"
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if host == "localhost" || host == "::1" {
		host = "127.0.0.1"
	}
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n)
	}
	return net.JoinHostPort(host, port)
}
