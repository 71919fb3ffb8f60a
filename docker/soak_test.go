package docker_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/redquorum/redquorum/docker"
	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/script"
)

var (
	soakSeed     = flag.Uint64("soak.seed", 0, "soak: deal the faults and draw the clients' work from this seed; default: another one each time")
	soakDuration = flag.Duration("soak.duration", 0, "soak: begin rounds for about so long; the first one always comes to its end")
)

const (
	soakNodes   = 5
	soakQuorum  = 3
	soakClients = 3
	soakWorkers = 3 // of each client, besides one that keeps a lock and one that tries in vain
	soakTTL     = time.Second
	// Long enough for a busy machine under the race detector.
	soakNodeTimeout = soakTTL / 6
)

// soakNames are what is fought for. Each client keeps the one of its number most of the time.
var soakNames = []string{"u", "v", "w", "x", "y"}

// TestSoak is to containers what TestRealSoak of the package quorum is to processes: clients work while everything goes
// wrong that can, and the same checkers judge it. What it has of its own is docker's: a server that is frozen with all it
// has, a machine that comes back with its disk or with a new one, a network that hangs one way or both.
//
// It goes in rounds. In each every fault occurs, and lasts until a client or the server itself has told of it: a fault
// that nobody notices is a failure. At the end all is healed, everybody must get every lock, and the round's history is
// checked. A seed repeats the faults and what the clients mean to do, but not what comes of it.
//
// Not in parallel with others: it keeps the machine busy, and they would miss their deadlines.
func TestSoak(t *testing.T) {
	s := &soak{t: t, seed: *soakSeed, log: &journal{}, faults: map[string]int{}}
	s.cluster = start(t, soakNodes, docker.Options{Persistence: docker.Always})
	s.engine = engine(t)
	if s.seed == 0 {
		s.seed = uint64(time.Now().Unix())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the clients logged:\n%s", s.log)
		}
	})
	t.Logf("to repeat the faults: go test -run 'TestSoak$' -soak.seed=%d", s.seed)
	began := time.Now()
	for s.rounds = 1; ; s.rounds++ {
		this := time.Now()
		r := newRound(s)
		r.play()
		if err := errors.Join(r.check(), s.remains()); err != nil {
			t.Fatalf("round %d: %v\nto repeat its faults: -soak.seed=%d\nThe history:\n%s", s.rounds, err, r.seed, r.log.History())
		}
		s.add(r)
		t.Logf("%v: %s", time.Since(began).Round(time.Second), &s.tally)
		if time.Since(began)+time.Since(this) > *soakDuration {
			break
		}
	}
	s.idle()
}

// soak is what all rounds have in common.
type soak struct {
	t       *testing.T
	cluster *docker.Cluster
	engine  *testcontainers.DockerClient // past the code under test
	log     *journal                     // of the clients
	seed    uint64
	tally
	faults map[string]int // that were noticed, by kind
}

// tally is what came of it all.
type tally struct {
	rounds, asked, granted, refused, unknown, lost, spanned, writes, stale int
}

func (n *tally) String() string {
	return fmt.Sprintf("%d rounds, %d of %d acquires granted, %d refused, %d unknown, %d leases outlived a fault, %d were lost, "+
		"%d writes, of which %d refused",
		n.rounds, n.granted, n.asked, n.refused, n.unknown, n.spanned, n.lost, n.writes, n.stale)
}

// add counts what happened in a round.
func (s *soak) add(r *round) {
	since := map[int]time.Duration{}
	for _, e := range r.log.History() {
		switch e.Kind {
		case history.Asked:
			s.asked++
		case history.Granted:
			s.granted++
			since[e.Op] = e.At
		case history.Refused:
			s.refused++
		case history.Unknown:
			s.unknown++
		case history.Ended:
			if e.Text == lost {
				s.lost++
			}
			if r.outlived(since[e.Op], e.At) {
				s.spanned++
			}
		case history.Wrote:
			s.writes++
			if !e.OK {
				s.stale++
			}
		}
	}
	for _, a := range r.over {
		s.faults[a.kind]++
	}
}

// idle fails the test if something that is to be tested has not happened at all.
func (s *soak) idle() {
	var counts strings.Builder
	for _, kind := range kinds() {
		fmt.Fprintf(&counts, "\n%6d %s", s.faults[kind], kind)
		if s.faults[kind] == 0 {
			s.t.Errorf("there was not once %q", kind)
		}
	}
	s.t.Logf("seed %d: faults that were noticed, by kind:%s", s.seed, &counts)
	if s.granted == 0 || s.refused == 0 || s.unknown == 0 || s.lost == 0 || s.spanned == 0 || s.writes == 0 {
		s.t.Errorf("this shows nothing: %s", &s.tally)
	}
}

// check judges a round.
func (r *round) check() error {
	h := r.log.History()
	return errors.Join(
		r.err,
		history.Exclusion(h),
		history.Tokens(h),
		history.Resource(h),
		history.Liveness(h, patience),
		history.Linear(h, time.Minute),
	)
}

// remains checks that no lock is left on any node, and that whatever else is there is so for a limited time.
func (s *soak) remains() error {
	var errs []error
	for i := range soakNodes {
		admin, err := s.admin(i)
		if err != nil {
			return err
		}
		keys, err := admin.Keys(s.t.Context(), "*").Result()
		errs = append(errs, err)
		for _, key := range keys {
			ttl, err := admin.PTTL(s.t.Context(), key).Result()
			errs = append(errs, err)
			switch {
			case key == script.RecordKey:
			case ttl == -1:
				errs = append(errs, fmt.Errorf("%s stays on node %d for ever", key, i))
			case !strings.HasPrefix(key, "redquorum_fence:") && ttl > 0:
				errs = append(errs, fmt.Errorf("%s is left on node %d, for %v", key, i, ttl))
			}
		}
		errs = append(errs, admin.Close())
	}
	return errors.Join(errs...)
}

// journal takes in what the clients log.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger(client int) *slog.Logger {
	return slog.New(slog.NewTextHandler(j, nil)).With("client", client)
}
