// Package nodes provides the servers that a run measures: those that were named, processes of our own, or embedded
// ones.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/node/embedded"
)

// Count is how many nodes a set of our own has.
const Count = 5

// A Kind is where the nodes come from.
type Kind string

// The kinds, in the order in which they are looked for.
const (
	Given    Kind = "given"    // named by the caller, and left as they are
	Composed Kind = "compose"  // containers of docker/compose.yaml
	Real     Kind = "real"     // redis-server processes that we started
	Embedded Kind = "embedded" // in this process: nothing but Go is needed, and no figure means much
)

// ErrNotOurs says that these nodes must not be hung or killed.
var ErrNotOurs = errors.New("these servers are not ours to stop")

// A Set is the nodes of a run. Close ends those that are ours.
type Set struct {
	Kind Kind
	URLs []string

	servers []*redisserver.Server
	cluster *embedded.Cluster
	stop    func() error
}

// Choose takes the nodes at the URLs, where there are any, else starts redis-server processes, else embedded nodes.
func Choose(urls []string) (*Set, error) {
	if len(urls) > 0 {
		return Given.at(urls)
	}
	s, err := Start(Real)
	if errors.Is(err, redisserver.ErrNoBinary) {
		return Start(Embedded)
	}
	return s, err
}

// at is a set of nodes that somebody else runs.
func (k Kind) at(urls []string) (*Set, error) {
	if err := Validate(urls); err != nil {
		return nil, err
	}
	return &Set{Kind: k, URLs: slices.Clone(urls)}, nil
}

// Start starts Count empty nodes of our own, Real or Embedded.
func Start(kind Kind) (*Set, error) {
	s := &Set{Kind: kind}
	switch kind {
	case Embedded:
		cluster, err := embedded.Start(Count)
		if err != nil {
			return nil, err
		}
		s.cluster, s.URLs = cluster, cluster.URLs()
	case Real:
		for range Count {
			server, err := redisserver.Launch(redisserver.Options{})
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
			s.servers = append(s.servers, server)
		}
		s.URLs = redisserver.URLs(s.servers)
	default:
		return nil, fmt.Errorf("nodes: start %s: %w", kind, ErrNotOurs)
	}
	return s, nil
}

// Validate reports the first URL that is none, without a password that it may have.
func Validate(urls []string) error {
	for i, u := range urls {
		switch at := slices.Index(urls, u); {
		case u == "":
			return fmt.Errorf("node %d is empty: want redis://host:port", i+1)
		case at != i:
			return fmt.Errorf("nodes %d and %d are the same, %s: each is to be another server", at+1, i+1, plain(u))
		}
		if _, err := redis.ParseURL(u); err != nil {
			return fmt.Errorf("node %d, %q, is no address: want redis://host:port", i+1, plain(u))
		}
	}
	return nil
}

// hidden takes the place of what may be a password.
const hidden = "[hidden]"

// plain is a URL without its password. Of what cannot be parsed nothing is shown that may be one.
func plain(raw string) string {
	u, err := url.Parse(raw)
	if err == nil {
		return u.Redacted()
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = hidden + rest[i:]
	}
	if !ok {
		return hidden
	}
	return scheme + "://" + rest
}

// Describe says what the nodes are, for a person.
func (s *Set) Describe() string {
	switch s.Kind {
	case Real:
		return fmt.Sprintf("%d redis-server processes on this machine", len(s.URLs))
	case Embedded:
		return fmt.Sprintf("%d embedded nodes in this process: no redis-server was found, so figures show only that "+
			"everything runs", len(s.URLs))
	case Composed:
		return fmt.Sprintf("%d containers of docker/compose.yaml on this machine", len(s.URLs))
	default:
		return fmt.Sprintf("%d nodes that were named", len(s.URLs))
	}
}

// Ours reports whether the nodes may be hung and killed.
func (s *Set) Ours() bool { return s.Kind == Real || s.Kind == Embedded }

// Hang makes node i stand still: it takes requests and answers none until Resume.
func (s *Set) Hang(i int) error {
	switch s.Kind {
	case Real:
		return s.servers[i].Pause()
	case Embedded:
		return s.cluster.Hang(i)
	default:
		return ErrNotOurs
	}
}

// Resume lets a node that hangs go on.
func (s *Set) Resume(i int) error {
	switch s.Kind {
	case Real:
		return s.servers[i].Resume()
	case Embedded:
		return s.cluster.Resume(i)
	default:
		return ErrNotOurs
	}
}

// Kill ends node i.
func (s *Set) Kill(i int) error {
	switch s.Kind {
	case Real:
		s.servers[i].Kill()
		return nil
	case Embedded:
		return s.cluster.Stop(i)
	default:
		return ErrNotOurs
	}
}

// Version is what the first node says its version is, or nothing.
func (s *Set) Version(ctx context.Context) string {
	if s.Kind == Embedded {
		return "miniredis"
	}
	opts, err := redis.ParseURL(s.URLs[0])
	if err != nil {
		return ""
	}
	opts.DialerRetries = 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(opts)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Close ends the nodes that are ours and leaves the others as they are.
func (s *Set) Close() error {
	for _, server := range s.servers {
		server.Close()
	}
	if s.cluster != nil {
		s.cluster.Close()
	}
	if s.stop != nil {
		return s.stop()
	}
	return nil
}
