package quorum_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/history"
	"github.com/redquorum/redquorum/internal/quorumtest"
	"github.com/redquorum/redquorum/script"
)

var (
	soakSeed     = flag.Uint64("soak.seed", 0, "soak: draw the faults and the clients' work from this seed; default: another one each time")
	soakDuration = flag.Duration("soak.duration", 0, "soak: begin rounds for about so long; the first one always comes to its end; default: no soak")
)

const (
	soakNodes   = 5
	soakQuorum  = 3
	soakClients = 4
	soakWorkers = 5 // of each client
	soakTTL     = time.Second
	// Long enough for a busy machine under the race detector.
	soakNodeTimeout = soakTTL / 6
)

// TestRealSoak is to real servers and connections what TestSimulation is to those in a world of its own: clients work
// while everything goes wrong that can, and the same checkers judge it. It shows what a model of Redis and of TCP may have
// got wrong. A seed repeats the faults and what the clients mean to do, but not what comes of it.
//
// It goes in rounds. In each every fault occurs at least once, and lasts until somebody has met with it; at the end all is
// healed, everybody must get every lock, nothing may be left, and the round's history is checked. The servers live through
// all rounds.
func TestRealSoak(t *testing.T) {
	if *soakDuration <= 0 {
		t.Skip("a soak gets better the longer it runs: -soak.duration says for how long, 12s for one round")
	}
	s := &soak{Machines: quorumtest.Start(t, soakNodes), seed: *soakSeed, faults: map[string]int{}, highest: map[string]int64{}}
	if s.seed == 0 {
		s.seed = uint64(time.Now().Unix())
	}
	t.Logf("to repeat the faults: go test ./quorum -run 'TestRealSoak$' -soak.seed=%d -soak.duration=%v", s.seed, *soakDuration)
	start := time.Now()
	for s.rounds = 1; ; s.rounds++ {
		began := time.Now()
		r := newSoakRound(s)
		r.play()
		s.add(r.log.History())
		if err := r.check(); err != nil {
			t.Fatalf("round %d: %v\nto repeat its faults: -soak.seed=%d\nThe history:\n%s", s.rounds, err, r.schedule.seed, r.log.History())
		}
		t.Logf("%v: %s", time.Since(start).Round(time.Second), s.line())
		if time.Since(start)+time.Since(began) > *soakDuration {
			break
		}
	}
	s.idle()
}

// soak is what all rounds have in common.
type soak struct {
	*quorumtest.Machines
	tally
	seed    uint64
	rounds  int
	mu      sync.Mutex
	faults  map[string]int   // that were met with, by kind
	highest map[string]int64 // of the last holder, by name
}

func (s *soak) line() string {
	faults := 0
	for _, n := range s.faults {
		faults += n
	}
	return fmt.Sprintf("%d rounds, %d faults, %d of %d acquires granted, %d refused, %d unknown, %d leases lost, %d writes, of which %d refused",
		s.rounds, faults, s.granted, s.asked, s.refused, s.unknown, s.lost, s.writes, s.stale)
}

// idle fails the test if something that is to be tested has not happened at all.
func (s *soak) idle() {
	var kinds []string
	for _, f := range serverFaults {
		if f.met != nil {
			kinds = append(kinds, f.name)
		}
		if f.forgets {
			kinds = append(kinds, f.name+", and found out")
		}
	}
	for _, f := range linkFaults {
		kinds = append(kinds, f.name)
	}
	var counts strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&counts, "\n%6d %s", s.faults[kind], kind)
		if s.faults[kind] == 0 {
			s.T.Errorf("nobody met with %q", kind)
		}
	}
	s.T.Logf("seed %d: faults that somebody met with, by kind:%s", s.seed, &counts)
	if s.granted == 0 || s.refused == 0 || s.writes == 0 || s.lost == 0 && s.rounds > 2 {
		s.T.Error("no grant, no refusal, no write or no loss, and the test shows nothing")
	}
	if !contains(s.Log.String(), "it may have forgotten locks") {
		s.T.Error("no client saw that a server may have forgotten")
	}
}

// check judges a round.
func (r *soakRound) check() error {
	h := r.log.History()
	return errors.Join(
		history.Exclusion(h),
		history.Tokens(h),
		r.succession(h),
		history.Resource(h),
		history.Liveness(h, r.patience()),
		history.Linear(h, time.Minute),
		r.lifetimes(),
	)
}

// succession checks that every holder has a greater token than the one before, across rounds too. It goes by the times at
// which they were told, and so sees more than history.Tokens does without the nodes' word: where no two believe at
// once, those are in the order of the grants.
func (r *soakRound) succession(h history.History) error {
	var grants history.History
	known := map[string]bool{}
	for _, e := range h {
		if e.Kind == history.Granted && !known[e.Holder] { // nested holds have the token of the first
			known[e.Holder] = true
			grants = append(grants, e)
		}
	}
	slices.SortStableFunc(grants, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	var errs []error
	for _, e := range grants {
		if e.Token <= r.highest[e.Name] {
			errs = append(errs, fmt.Errorf("%s: %s has token %d, and somebody before it %d", e.Name, e.Holder, e.Token, r.highest[e.Name]))
		}
		r.highest[e.Name] = e.Token
	}
	return errors.Join(errs...)
}

// lifetimes checks that whatever stays on the servers besides their records does so for a limited time.
func (r *soakRound) lifetimes() error {
	var errs []error
	for _, s := range r.Servers {
		keys, err := s.Client().Keys(r.T.Context(), "*").Result()
		errs = append(errs, err)
		for _, key := range keys {
			ttl, err := s.Client().PTTL(r.T.Context(), key).Result()
			errs = append(errs, err)
			if ttl == -1 && key != script.RecordKey {
				errs = append(errs, fmt.Errorf("%s stays on %s for ever", key, s.Addr()))
			}
		}
	}
	return errors.Join(errs...)
}
