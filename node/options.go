package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/clock"
)

// An Option changes how a Node works.
type Option func(*Node)

// WithClock makes the Node measure time on clk. The default is [clock.System].
func WithClock(clk clock.Clock) Option { return func(n *Node) { n.clock = clk } }

// parseURL reads a node's address. go-redis' and net/url's own errors repeat the address, password included, so none
// of their words get out.
func parseURL(raw string) (*redis.Options, error) {
	scheme, _, ok := strings.Cut(raw, "://")
	if !ok || (scheme != "redis" && scheme != "rediss" && scheme != "unix") {
		if !ok {
			return nil, errors.New("node: an address without a scheme: want redis://, rediss:// or unix://")
		}
		return nil, fmt.Errorf("node: scheme %q: want redis, rediss or unix", scheme)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("node: cannot parse the %s:// address (its text is withheld, it may hold a password): "+
			"want %s://[user:password@]host:port[/db] with special characters percent-encoded", scheme, scheme)
	}
	shown := Redact(u)
	if scheme != "unix" && u.Hostname() == "" {
		return nil, fmt.Errorf("node: address %q has no host: want %s://[user:password@]host:port[/db]", shown, scheme)
	}
	opts, err := redis.ParseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("node: address %q: want %s://[user:password@]host:port[/db][?option=value] with options "+
			"that go-redis knows", shown, scheme)
	}
	return opts, nil
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
	}
	return nil
}

// harden returns a copy of the options on which a lock can rely. What it overrides, and why:
//
//   - no retries: a request that is sent again behind our back may take effect after it was given up;
//   - the context's deadline is the only timeout, for dialling, the handshake, waiting for a connection, writing and
//     reading: one budget a request, not five;
//   - no CLIENT SETINFO and no maintenance notifications: two round trips less a connection, and no DNS look-up;
//   - connections are made by [lateConn].
func (n *Node) harden(opts *redis.Options) *redis.Options {
	o := *opts
	o.Network = network(opts)
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.ReadTimeout = -1
	o.WriteTimeout = -1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.MinIdleConns = 0 // made in the background, without a deadline

	dial, plain := n.dialer(opts, o.Network)
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if plain {
			return lateSocket{newLateConn(dial)}, nil
		}
		return newLateConn(dial), nil
	}
	return &o
}

// dialer returns how to connect, and whether the result is a plain socket.
func (n *Node) dialer(opts *redis.Options, network string) (dial dialFunc, plain bool) {
	if opts.Dialer != nil {
		return func(ctx context.Context) (net.Conn, error) {
			conn, err := opts.Dialer(ctx, network, opts.Addr)
			if err == nil {
				forget(conn)
			}
			return conn, err
		}, false
	}
	return dialSocket(network, opts.Addr, tlsConfig(opts)), opts.TLSConfig == nil
}

// tlsConfig fills in the server's name, which go-redis' dialler takes from the address.
func tlsConfig(opts *redis.Options) *tls.Config {
	if opts.TLSConfig == nil || opts.TLSConfig.ServerName != "" || opts.TLSConfig.InsecureSkipVerify {
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
