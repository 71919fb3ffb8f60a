package counter_test

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/counter"
	"github.com/redquorum/redquorum/cmd/redquorum/internal/stock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a stock to a client until the test, or the client, ends.
func serve(t *testing.T, s *stock.Stock, job counter.Job) (client *counter.Client, ended <-chan struct{}) {
	t.Helper()
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		counter.Serve(here, s, job)
	}()
	client = counter.NewClient(there)
	t.Cleanup(func() {
		_ = client.Close()
		<-done
	})
	return client, done
}

func TestTheJobArrivesWhole(t *testing.T) {
	want := counter.Job{
		Process: 2, Workers: 3, Think: time.Second, Lock: "a", TTL: time.Minute, Nodes: []string{"redis://:p%2Cw@h:1"},
	}
	client, _ := serve(t, stock.New(1), want)
	got, err := client.Job()
	if err != nil || got.Process != 2 || got.Workers != 3 || got.Think != want.Think || got.Lock != "a" ||
		got.TTL != want.TTL || len(got.Nodes) != 1 || got.Nodes[0] != want.Nodes[0] {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTokensOfMicrosecondsArriveWhole(t *testing.T) {
	s := stock.New(2)
	client, _ := serve(t, s, counter.Job{Process: 1})
	const token = 1<<53 - 1
	if _, err := client.Look(1, token); err != nil {
		t.Fatal(err)
	}
	if err := client.Sell(1, token, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Look(2, token-1); !errors.Is(err, counter.ErrRefused) {
		t.Errorf("got %v, want %v", err, counter.ErrRefused)
	}
	if quantity, err := client.Look(2, token+1); quantity != 1 || err != nil {
		t.Errorf("got %d, %v", quantity, err)
	}
}

func TestTheEndOfTheLineEndsTheVisits(t *testing.T) {
	s := stock.New(2)
	client, ended := serve(t, s, counter.Job{Process: 1})
	if _, err := client.Look(1, 0); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	<-ended
	if who := s.Inside(); who != nil {
		t.Errorf("still inside: %v", who)
	}
	if err := client.Sell(1, 0, 2); err == nil {
		t.Error("a sale after the end of the line")
	}
}

func TestWorkersOfAProcessShareTheLine(t *testing.T) {
	s := stock.New(1000)
	client, _ := serve(t, s, counter.Job{Process: 1})
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for range 50 {
				if _, err := client.Look(n, 0); err != nil {
					t.Error(err)
				}
				if err := client.Leave(n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if got := s.Tally(); got.Visits != 400 || got.Abandoned != 400 {
		t.Errorf("got %+v", got)
	}
}
