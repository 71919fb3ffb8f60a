package node

import (
	"context"
	"errors"
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

	sentinels *sentinels // say which server it is; nil if that never changes

	listening listeners

	closed  atomic.Bool
	closing sync.Once
}

// Open returns the node at a URL: redis://[user:password@]host:port[/db], rediss:// for TLS, unix:// for a socket,
// with go-redis' query options. It talks to nobody. An error names what is wrong, and never contains the credentials.
//
// The options cacert, cert and key of rediss:// name PEM files: the authority that signs the servers' certificates, in place of
// those of the system, and the client's own certificate and private key. The last two are read again for every
// connection, so they may be renewed while the process runs. Whatever else there is to say about TLS, [New] takes.
//
// redis+sentinel://[user:password@]host:port,host:port,…/master[/db] is a master that sentinels watch, at these addresses
// (port 26379 if it is left out), rediss+sentinel:// with TLS to all of them. The credentials are the master's; those of the
// sentinels are the options sentinel_username and sentinel_password. See [NewFailover] for what such a node needs.
func Open(rawURL string, options ...Option) (*Node, error) {
	if scheme, _, ok := strings.Cut(rawURL, "://"); ok && (scheme == "redis"+sentinelSuffix || scheme == "rediss"+sentinelSuffix) {
		w, err := parseSentinelURL(rawURL)
		if err != nil {
			return nil, err
		}
		return newFailover(w, options)
	}
	opts, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return New(opts, options...)
}

// New returns the node that opts describe. The options are copied and hardened for locks: timeouts and retries of
// their own have no effect, since every request has one budget, its context's. Scripts go over one connection, which is kept
// until it ends: so the size of the pool and how long connections live have no effect on it either, and of a
// StreamingCredentialsProvider it takes the credentials when it is made. It does no I/O.
func New(opts *redis.Options, options ...Option) (*Node, error) {
	if err := validate(opts); err != nil {
		return nil, err
	}
	n := &Node{name: name(opts), addr: address(opts)}
	dial, plain := dialer(*opts, network(opts))
	n.start(opts, dial, plain, options)
	return n, nil
}

// start makes the node usable. plain says that what is dialled is without TLS of ours.
func (n *Node) start(opts *redis.Options, dial dialFunc, plain bool, options []Option) {
	n.clock = clock.System()
	n.dial = dial
	n.stream.node, n.stream.most = n, defaultBatches
	for _, option := range options {
		option(n)
	}
	n.opts = harden(opts, dial, plain)

	main := *n.opts
	main.OnConnect = n.onConnect(opts.OnConnect)
	n.client = redis.NewClient(&main)
	n.listening.node = n
}

// Name names the node in votes, errors and logs: its host and port or socket, and the database if it is not 0. Behind
// Sentinel it is master@host:port, with the first of the sentinels.
func (n *Node) Name() string { return n.name }

// Address tells servers apart: two nodes with one address are one server, whatever their databases. Behind Sentinel it is the
// master's name with the addresses of the sentinels.
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
		if n.sentinels != nil {
			err = errors.Join(err, n.sentinels.close())
		}
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
