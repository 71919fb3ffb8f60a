package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// NewFailover returns the node that sentinels call opts.MasterName: at every moment the server which more than half of
// opts.SentinelAddrs name. Like [New] it copies and hardens the options and does no I/O.
//
// What it takes for such a node to be as safe as any other:
//
//   - The restart guard is on ([Node.Guard]): a promoted replica may not have got all that its master had granted. It does
//     not vote for as long as the longest TTL in use, and three seconds.
//   - min-replicas-to-write is 1 at least on every server of the group, or the node does not vote ([ErrUnguarded]).
//   - All clients name the same sentinels, so that any two majorities of them share one; and the sentinels keep their
//     configuration files, in which they remember whom they have promoted.
//
// A node in use asks the sentinels once a second, and a request has no more than two seconds. While no majority of them
// answers, the node does not vote ([ErrNoMaster]). Dialer, TLSConfig and Protocol are for the sentinels, too; the Dialer is
// given the addresses that they tell.
func NewFailover(opts *redis.FailoverOptions, options ...Option) (*Node, error) {
	if opts == nil {
		return nil, errors.New("node: options are nil")
	}
	if opts.ReplicaOnly || opts.RouteByLatency || opts.RouteRandomly || opts.UseDisconnectedReplicas {
		return nil, errors.New("node: options that lead to a replica (ReplicaOnly, RouteByLatency, RouteRandomly, " +
			"UseDisconnectedReplicas): a lock is the master's")
	}
	return newFailover(watched{
		master: opts.MasterName, addrs: opts.SentinelAddrs,
		username: opts.SentinelUsername, password: opts.SentinelPassword,
		opts: redis.Options{
			ClientName: opts.ClientName, Dialer: opts.Dialer, OnConnect: opts.OnConnect, Protocol: opts.Protocol,
			Username: opts.Username, Password: opts.Password, CredentialsProvider: opts.CredentialsProvider,
			CredentialsProviderContext:   opts.CredentialsProviderContext,
			StreamingCredentialsProvider: opts.StreamingCredentialsProvider,
			DB:                           opts.DB, TLSConfig: opts.TLSConfig,
			ReadBufferSize: opts.ReadBufferSize, WriteBufferSize: opts.WriteBufferSize,
			PoolFIFO: opts.PoolFIFO, PoolSize: opts.PoolSize, MaxIdleConns: opts.MaxIdleConns,
			ConnMaxIdleTime: opts.ConnMaxIdleTime, ConnMaxLifetime: opts.ConnMaxLifetime,
			ConnMaxLifetimeJitter:     opts.ConnMaxLifetimeJitter,
			PushNotificationProcessor: opts.PushNotificationProcessor,
		},
	}, options)
}

// BehindSentinel tells whether sentinels say which server the node is.
func (n *Node) BehindSentinel() bool { return n.sentinels != nil }

// watched is a master that sentinels watch.
type watched struct {
	master             string
	addrs              []string
	username, password string        // for the sentinels
	opts               redis.Options // for the master, but for its address
}

func newFailover(w watched, options []Option) (*Node, error) {
	if err := w.validate(); err != nil {
		return nil, err
	}
	s := &sentinels{
		master: w.master, addrs: slices.Clone(w.addrs), opts: w.opts,
		asking: make(chan struct{}, 1), conns: map[*pinned]struct{}{},
	}
	s.over, s.end = context.WithCancel(context.Background())
	for _, addr := range s.addrs {
		opts := redis.Options{
			Addr: addr, ClientName: w.opts.ClientName, Dialer: w.opts.Dialer, Protocol: w.opts.Protocol,
			Username: w.username, Password: w.password, TLSConfig: w.opts.TLSConfig,
			PoolSize: 1, ReadBufferSize: sentinelBuffer, WriteBufferSize: sentinelBuffer,
		}
		dial, plain := dialer(opts, "tcp")
		s.asked = append(s.asked, redis.NewSentinelClient(harden(&opts, s.whileOpen(dial), plain)))
	}
	opts := w.opts
	opts.Addr = w.master + "@" + s.addrs[0] // go-redis wants one; nobody dials it
	n := &Node{name: name(&opts), addr: w.address(), sentinels: s}
	s.node = n
	_, plain := dialer(opts, "tcp")
	n.start(&opts, s.dial, plain, options)
	return n, nil
}

// sentinelBuffer is enough for an address.
const sentinelBuffer = 1 << 10

// address tells groups apart, whatever order their sentinels are named in.
func (w watched) address() string {
	var all []string
	for _, addr := range w.addrs {
		all = append(all, address(&redis.Options{Addr: addr}))
	}
	slices.Sort(all)
	return "sentinel:" + w.master + "@" + strings.Join(all, ",")
}

// validate refuses what cannot work, before anything is touched.
func (w watched) validate() error {
	switch {
	case w.master == "":
		return errors.New("node: no name of a master: want the one that the sentinels monitor it by")
	case strings.ContainsFunc(w.master, outsideName):
		return fmt.Errorf("node: master %q: want letters, digits and .-_ as Sentinel does", w.master)
	case len(w.addrs) == 0:
		return fmt.Errorf("node: no sentinels for master %q: want the addresses of all of them", w.master)
	}
	seen := map[string]bool{}
	for _, addr := range w.addrs {
		opts := w.opts
		opts.Network, opts.Addr = "tcp", addr
		if addr == "" {
			return fmt.Errorf("node: a sentinel of master %q has no address", w.master)
		}
		if err := validate(&opts); err != nil {
			return err
		}
		if _, _, err := net.SplitHostPort(addr); err != nil { // a dialler of the caller's may take anything; we do not
			return fmt.Errorf("node: sentinel %q: want host:port", addr)
		}
		a := address(&opts)
		if seen[a] {
			return fmt.Errorf("node: sentinel %s is named twice: it would have two votes", a)
		}
		seen[a] = true
	}
	return nil
}

// outsideName tells whether a character is none of a master's name.
func outsideName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_", r)
}

// sentinelSuffix is what the scheme of an address ends in that names sentinels.
const sentinelSuffix = "+sentinel"

// parseSentinelURL reads an address that names sentinels. net/url does not take several hosts, so they are taken apart
// here, and what remains is an address like any other.
func parseSentinelURL(raw string) (watched, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	plain := strings.TrimSuffix(scheme, sentinelSuffix)
	form := scheme + "://[user:password@]host:port,…/master[/db][?option=value]"
	withheld := fmt.Errorf("node: cannot parse the %s:// address (its text is withheld, it may hold a password): "+
		"want %s with special characters percent-encoded", scheme, form)

	authority, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, after = rest[:i], rest[i:]
	}
	if strings.Contains(after, "@") { // see misplaced
		return watched{}, withheld
	}
	credentials, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		credentials, hosts = authority[:i+1], authority[i+1:]
	}
	var w watched
	for _, host := range strings.Split(hosts, ",") {
		u, err := url.Parse("redis://" + host)
		switch {
		case err != nil || u.Host != host:
			return watched{}, withheld
		case u.Hostname() == "":
			return watched{}, fmt.Errorf("node: address %q has an empty host: want %s", scheme+"://"+hosts, form)
		case u.Port() == "":
			host = net.JoinHostPort(u.Hostname(), "26379")
		}
		w.addrs = append(w.addrs, host)
	}
	path, options, _ := strings.Cut(after, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if parts[0] == "" || len(parts) > 2 || strings.Contains(after, "#") {
		return watched{}, fmt.Errorf("node: address %q: want %s", scheme+"://"+hosts+path, form)
	}
	w.master = parts[0]
	query, err := url.ParseQuery(options)
	if err != nil {
		return watched{}, withheld
	}
	w.username, w.password = query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	opts, err := parseURL(plain + "://" + credentials + w.addrs[0] + "/" + strings.Join(parts[1:], "/") + "?" + query.Encode())
	if err != nil {
		// Its words are about another form, and fit where they do not quote the address.
		return watched{}, fmt.Errorf("node: address %q: want %s with options that go-redis knows", scheme+"://"+hosts+path, form)
	}
	if opts.TLSConfig != nil && opts.TLSConfig.ServerName == w.host() {
		opts.TLSConfig.ServerName = "" // of each server its own
	}
	w.opts = *opts
	return w, nil
}

// host is that of the first sentinel.
func (w watched) host() string {
	host, _, _ := net.SplitHostPort(w.addrs[0])
	return host
}
