package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/clock"
)

// A node behind Sentinel.
//
// Which server is the node, the sentinels say, and they change their minds. A server that they have replaced need not
// know it: cut off from them it remains a master, and to a client that reaches it it looks like one. If it went on voting
// while the promoted replica votes as well, the node would have two votes, and one lock two holders. No setting of Redis
// prevents that: min-replicas-to-write stops a master that has lost its replicas, in some ten seconds, and one that keeps
// one of two on its side never. So:
//
//   - A server is the node only for reliance after more than half of the sentinels named it. A request is answered within
//     that time or not at all, on the server's clock too. Every sentinel goes from one master to the next and never back,
//     and two majorities share one: so once a majority has named the new master, the old one answers nobody for longer
//     than reliance.
//   - The new master is another server than its record's, which it has got from the old one, and begins a new incarnation
//     (check.lua), with a quarantine that is longer than the longest TTL by lingers: what the old one granted in the
//     meantime has run out then.
//   - For lingers it is asked for nothing at all. In quarantine it takes renewals, which may count (see quorum's guard.go);
//     while the old one may still vote for somebody else, they must not.
//   - There is one server at a time: with the first word of a new master all connections to the old one are closed.

const (
	// reliance is for how long the word of the sentinels is good. Half as often, at least, a node in use asks them again.
	reliance = 2 * time.Second
	// lingers is longer than reliance by more than clocks can run apart in that time.
	lingers = 3 * time.Second
	// mostAsking bounds a question for which the caller has more time: sentinels are many, so that one may fail.
	mostAsking = time.Second
)

// ErrNoMaster is a node of which no server is known to be the master: fewer than half of the sentinels name the same one,
// or answer at all.
var ErrNoMaster = errors.New("node: no majority of its sentinels names a master")

// ErrPromoted is a node whose server has become master a moment ago. It is asked for nothing until the one before it is
// certain not to vote any more, for three seconds.
var ErrPromoted = errors.New("node: its server has become master a moment ago")

// sentinels say which server is the node.
type sentinels struct {
	node   *Node
	master string
	addrs  []string
	asked  []*redis.SentinelClient
	opts   redis.Options // of the master, but for its address

	group  errgroup.Group // questions under way
	asking chan struct{}  // has a value while somebody asks
	over   context.Context
	end    context.CancelFunc // ends the connections to the sentinels

	mu     sync.Mutex
	closed bool
	addr   string               // what a majority named last; "" before
	at     clock.Instant        // when they were asked for it
	until  clock.Instant        // the new master is left alone until then
	conns  map[*pinned]struct{} // all of them lead to addr
}

// said is what one sentinel answered.
type said struct {
	addr string
	err  error
}

// rely returns the server that is the node, and the moment until which it is.
func (s *sentinels) rely(ctx context.Context) (addr string, until clock.Instant, err error) {
	if addr, until, ok := s.known(); ok {
		return addr, until, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return "", clock.Instant{}, ErrTimeout
	}
	if addr, until, ok := s.known(); ok { // somebody else has asked meanwhile
		return addr, until, nil
	}
	asked := s.node.clock.Now()
	if addr, err = s.ask(ctx); err != nil {
		return "", clock.Instant{}, err
	}
	s.take(addr, asked)
	return addr, asked.Add(reliance), nil
}

// known tells what is known already, if it will do for a while.
func (s *sentinels) known() (addr string, until clock.Instant, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until = s.at.Add(reliance)
	return s.addr, until, s.addr != "" && until.Sub(s.node.clock.Now()) > reliance/2
}

// take takes in what a majority said when it was asked, and breaks with the server before.
func (s *sentinels) take(addr string, asked clock.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr != addr {
		for p := range s.conns {
			_ = p.Conn.Close()
		}
		clear(s.conns)
	}
	s.addr, s.at = addr, asked
}

// doubt makes the next one ask again: the server was not there.
func (s *sentinels) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = clock.Instant{}
}

// ask asks all sentinels at once, so that one that hangs costs nothing, and waits for more than half of them to agree.
func (s *sentinels) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mostAsking)
	defer cancel()
	answers := make(chan said, len(s.asked))
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return "", ErrClosed
	}
	for i, sentinel := range s.asked {
		s.group.Go(func() error {
			at, err := sentinel.GetMasterAddrByName(ctx, s.master).Result()
			if err == nil && len(at) != 2 {
				err = errOdd
			}
			if err != nil {
				answers <- said{err: fmt.Errorf("%s: %w", s.addrs[i], s.reason(err))}
				return nil
			}
			answers <- said{addr: net.JoinHostPort(at[0], at[1])}
			return nil
		})
	}
	s.mu.Unlock()

	need := len(s.asked)/2 + 1
	named := map[string]int{}
	var failed []error
	for range s.asked {
		a := <-answers // in time: every question ends with ctx
		if a.err != nil {
			failed = append(failed, a.err)
			if len(failed) > len(s.asked)-need {
				break
			}
			continue
		}
		if named[a.addr]++; named[a.addr] == need {
			return a.addr, nil
		}
	}
	return "", noMaster(named, failed, len(s.asked)-need)
}

// reason is what went wrong with one sentinel. A context's error would pass for the caller's.
func (s *sentinels) reason(err error) error {
	switch {
	case errors.Is(err, redis.Nil):
		return fmt.Errorf("knows no master called %q", s.master)
	case timedOut(err):
		return ErrTimeout
	case errors.Is(err, redis.ErrClosed):
		return ErrClosed
	}
	return err
}

// noMaster tells what the sentinels said. It matches their errors only if waiting cannot cure more of them than may fail.
func noMaster(named map[string]int, failed []error, mayFail int) error {
	var words []string
	for addr, n := range named {
		words = append(words, fmt.Sprintf("%d for %s", n, addr))
	}
	slices.Sort(words)
	lasting := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return !Permanent(err) })
	if len(lasting) > mayFail {
		return fmt.Errorf("%w: %w", ErrNoMaster, lasting[0])
	}
	for _, err := range failed {
		words = append(words, err.Error())
	}
	return fmt.Errorf("%w: %s", ErrNoMaster, strings.Join(words, ", "))
}

// found takes in what a check found: see the rules above.
func (s *sentinels) found(rests bool, age time.Duration, received clock.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = clock.Instant{}
	if rests {
		s.until = received.Add(lingers - max(0, age))
	}
}

// rests tells whether the node is to be left alone yet.
func (s *sentinels) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.until.IsZero() && s.node.clock.Now().Before(s.until)
}

// close ends the connections to the sentinels, and joins the questions.
func (s *sentinels) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	_ = s.group.Wait() // answers carry the errors
	var errs []error
	for _, sentinel := range s.asked {
		errs = append(errs, sentinel.Close())
	}
	return errors.Join(errs...)
}
