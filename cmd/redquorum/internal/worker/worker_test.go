package worker_test

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/counter"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/stock"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/worker"
	"github.com/redquorum/redquorum/node/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a worker process that is none.
type process struct {
	line  net.Conn // the side of the stock
	ended chan error
}

func hire(t *testing.T, s *stock.Stock, job counter.Job) *process {
	t.Helper()
	here, there := net.Pipe()
	p := &process{line: here, ended: make(chan error, 1)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		counter.Serve(here, s, job)
	}()
	go func() { p.ended <- worker.Run(context.Background(), there) }()
	t.Cleanup(func() {
		_ = here.Close()
		<-served
	})
	return p
}

func cluster(t *testing.T) *embedded.Cluster {
	t.Helper()
	nodes, err := embedded.Start(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	return nodes
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestWithoutALockWorkersOversell(t *testing.T) {
	s := stock.New(5)
	p := hire(t, s, counter.Job{Process: 1, Workers: 4, Think: 4 * time.Millisecond})
	if err := <-p.ended; err != nil {
		t.Fatal(err)
	}
	if got := s.Tally(); got.Oversold() == 0 || got.Together == 0 {
		t.Errorf("got %+v", got)
	}
}

func TestWithALockTheyDoNot(t *testing.T) {
	s := stock.New(5)
	job := counter.Job{
		Process: 1, Workers: 4, Think: 4 * time.Millisecond, Lock: "a", TTL: time.Second, Nodes: cluster(t).URLs(),
	}
	p := hire(t, s, job)
	if err := <-p.ended; err != nil {
		t.Fatal(err)
	}
	if got := s.Tally(); got.Exact() != nil {
		t.Errorf("got %+v, %v", got, got.Exact())
	}
}

func TestAnOrderWhoseLeaseWasLostIsBegunAgain(t *testing.T) {
	nodes := cluster(t)
	s := stock.New(1)
	const ttl = 300 * time.Millisecond
	p := hire(t, s, counter.Job{Process: 1, Workers: 1, Think: 2 * ttl, Lock: "a", TTL: ttl, Nodes: nodes.URLs()})
	eventually(t, "the worker inside", func() bool { return s.Inside() != nil })
	nodes.Stop(0)
	eventually(t, "the worker leaves", func() bool { return s.Tally().Abandoned == 1 })
	if err := nodes.Restart(0, false); err != nil {
		t.Fatal(err)
	}
	if err := <-p.ended; err != nil {
		t.Fatal(err)
	}
	if got := s.Tally(); got.Exact() != nil || got.Visits < 3 {
		t.Errorf("got %+v, %v", got, got.Exact())
	}
}

func TestAWorkerBelowTheFenceComesAgainWithAHigherToken(t *testing.T) {
	s := stock.New(2)
	p := hire(t, s, counter.Job{
		Process: 1, Workers: 1, Think: 4 * time.Millisecond, Lock: "a", TTL: time.Second, Nodes: cluster(t).URLs(),
	})
	// Tokens are microseconds of the clock: a while from now they have grown beyond this one.
	s.Look(stock.Visitor{Process: 9}, time.Now().Add(200*time.Millisecond).UnixMicro())
	s.Leave(stock.Visitor{Process: 9})
	if err := <-p.ended; err != nil {
		t.Fatal(err)
	}
	if got := s.Tally(); got.Exact() != nil || got.Refused == 0 {
		t.Errorf("got %+v, %v", got, got.Exact())
	}
}

// The workers wait in Acquire, for a node that takes connections and answers nothing; no call to the stock is under way
// that could fail.
func TestTheEndOfTheLineEndsAWait(t *testing.T) {
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := hire(t, stock.New(1), counter.Job{
		Process: 1, Workers: 3, Think: time.Minute, Lock: "a", TTL: time.Second,
		Nodes: []string{"redis://" + silent.Addr().String()},
	})
	asked, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	_ = p.line.Close()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheLineGivesTheLockBack(t *testing.T) {
	nodes := cluster(t)
	first, second := stock.New(1), stock.New(1)
	job := counter.Job{Process: 1, Workers: 1, Think: time.Hour, Lock: "a", TTL: time.Minute, Nodes: nodes.URLs()}
	p := hire(t, first, job)
	eventually(t, "the worker inside", func() bool { return first.Inside() != nil })
	_ = p.line.Close()
	if err := <-p.ended; err != nil {
		t.Fatal(err)
	}
	job.Think = 4 * time.Millisecond
	if err := <-hire(t, second, job).ended; err != nil { // long before the TTL
		t.Fatal(err)
	}
}

func TestANodeThatRefusesEndsTheWork(t *testing.T) {
	s := stock.New(1)
	p := hire(t, s, counter.Job{Process: 1, Workers: 2, Lock: "a", TTL: time.Second, Nodes: []string{"http://h"}})
	if err := <-p.ended; err == nil {
		t.Error("no error")
	}
}
