package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/clock"
)

// An Option changes how a Node works.
type Option func(*Node)

// WithClock makes the Node measure time on clk. The default is [clock.System].
func WithClock(clk clock.Clock) Option { return func(n *Node) { n.clock = clk } }

// WithBatches sets how many batches of requests may be under way at once, over the one connection that carries them; the
// default is 2. Requests beyond that share the next one. More of them help where the server is far away, or answers
// slowly. n below 1 counts as 1.
func WithBatches(n int) Option { return func(node *Node) { node.stream.most = max(1, n) } }

// WithSlack makes calls end up to d after their deadline. It is for simulations, in which the timeouts of several nodes shall
// not be one moment; the default is 0.
func WithSlack(d time.Duration) Option { return func(node *Node) { node.stream.slack = max(0, d) } }

// parseURL reads a node's address. go-redis' and net/url's own errors repeat the address, password included, so none
// of their words get out.
func parseURL(raw string) (*redis.Options, error) {
	scheme, _, ok := strings.Cut(raw, "://")
	switch {
	case !ok:
		return nil, errors.New("node: an address without a scheme: want redis://, rediss:// or unix://, or redis+sentinel://")
	case strings.ContainsFunc(scheme, func(r rune) bool { return r < 'A' || r > 'z' }):
		// user:password and an address that begins later, perhaps.
		return nil, errors.New("node: an address whose scheme is none (its text is withheld, it may hold a password): " +
			"want redis://, rediss:// or unix://")
	case scheme != "redis" && scheme != "rediss" && scheme != "unix":
		return nil, fmt.Errorf("node: scheme %q: want redis, rediss or unix (or redis+sentinel, for what Sentinel watches)", scheme)
	}
	form := scheme + "://[user:password@]host:port[/db][?option=value]"
	if scheme == "unix" {
		form = "unix://[user:password@]/path/of/the.sock[?db=n]"
	}
	u, err := url.Parse(raw)
	if err != nil || misplaced(u) {
		return nil, fmt.Errorf("node: cannot parse the %s:// address (its text is withheld, it may hold a password): "+
			"want %s with special characters percent-encoded", scheme, form)
	}
	shown := Redact(u)
	switch {
	case scheme != "unix" && u.Hostname() == "":
		return nil, fmt.Errorf("node: address %q has no host: want %s", shown, form)
	case scheme == "unix" && u.Host != "":
		return nil, fmt.Errorf("node: address %q has a host, and a socket has none: want %s", shown, form)
	case u.Fragment != "":
		return nil, fmt.Errorf("node: address %q goes on with a '#': want %s with special characters percent-encoded", shown, form)
	}
	files, rest, err := takeCertificates(u)
	if err != nil {
		return nil, fmt.Errorf("node: address %q %w", shown, err)
	}
	if rest != u {
		raw = rest.String()
	}
	opts, err := redis.ParseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("node: address %q: want %s with options that go-redis knows", shown, form)
	}
	if err := files.apply(opts); err != nil {
		return nil, fmt.Errorf("node: address %q: %w", shown, err)
	}
	return opts, nil
}

// misplaced tells whether there is an '@' where none should be: then what stands before it was meant for credentials,
// and one of their characters, not percent-encoded, ended them early. "redis://me:1/2@host" has the host me, port 1.
func misplaced(u *url.URL) bool {
	after := u.RawQuery + u.Fragment
	if u.Scheme != "unix" || u.Host != "" {
		after += u.Host + u.Path
	}
	return strings.Contains(after, "@")
}

// Redact writes an address without its credentials and options.
func Redact(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return bare.String()
}

// validate refuses options that cannot work, before anything is touched.
func validate(opts *redis.Options) error {
	switch {
	case opts == nil:
		return errors.New("node: options are nil")
	case opts.Addr == "":
		return errors.New("node: options have no address")
	case opts.DB < 0:
		return fmt.Errorf("node: database %d is negative", opts.DB)
	case opts.PoolSize < 0:
		return fmt.Errorf("node: pool size %d is negative", opts.PoolSize)
	case opts.ClientSideCache != nil || opts.ClientSideCacheConfig != nil:
		return errors.New("node: client-side caching has no place in a lock's client")
	case network(opts) == "unix":
		return nil
	case strings.Contains(opts.Addr, "@"):
		return errors.New("node: the options' address holds credentials, or what looks like them (its text is withheld): " +
			"want host:port")
	case opts.Dialer != nil:
		return nil // who knows what it dials
	}
	_, port, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		return fmt.Errorf("node: address %q: want host:port", opts.Addr)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
		return fmt.Errorf("node: address %q: port %q: want 1 to 65535", opts.Addr, port)
	}
	return nil
}

// harden returns a copy of the options on which a lock can rely. What it overrides, and why:
//
//   - no retries: a request that is sent again behind our back may take effect after it was given up;
//   - the context's deadline is the only timeout, for dialling, the handshake, waiting for a connection, writing and
//     reading: one budget a request, not five;
//   - no CLIENT SETINFO and no maintenance notifications: two round trips less a connection, and no DNS look-up;
//   - connections are made by [lateConn], with dial; plain says that it is without TLS of ours.
func harden(opts *redis.Options, dial dialFunc, plain bool) *redis.Options {
	o := *opts
	o.Network = network(opts)
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.ReadTimeout = -1
	o.WriteTimeout = -1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.PoolTimeout = forever
	o.MinIdleConns = 0   // made in the background, without a deadline
	o.MaxActiveConns = 0 // would refuse requests at once; the pool's size bounds the connections, and requests wait for one

	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if plain {
			return lateSocket{newLateConn(dial)}, nil
		}
		return newLateConn(dial), nil
	}
	return &o
}

// forever is longer than a request has.
const forever = 365 * 24 * time.Hour

// dialer returns how to connect, and whether the result is what the kernel gives us, without TLS of ours. It takes a
// copy of the options: it dials for as long as the node lives, whatever becomes of the caller's.
func dialer(opts redis.Options, network string) (dial dialFunc, plain bool) {
	if opts.Dialer != nil {
		return func(ctx context.Context) (net.Conn, error) {
			conn, err := opts.Dialer(ctx, network, opts.Addr)
			if err == nil {
				forget(conn)
			}
			return conn, err
		}, true
	}
	return dialSocket(network, opts.Addr, tlsConfig(&opts)), opts.TLSConfig == nil
}

// tlsConfig fills in the server's name, which go-redis' dialler takes from the address.
func tlsConfig(opts *redis.Options) *tls.Config {
	if opts.TLSConfig == nil || opts.TLSConfig.ServerName != "" {
		return opts.TLSConfig
	}
	host, _, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		host = opts.Addr
	}
	config := opts.TLSConfig.Clone()
	config.ServerName = host
	return config
}

func network(opts *redis.Options) string {
	switch {
	case opts.Network != "":
		return opts.Network
	case strings.HasPrefix(opts.Addr, "/"):
		return "unix"
	}
	return "tcp"
}
