package integration_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquorum/redquorum/quorum"
)

// A process that was suspended for longer than the TTL sees at its very first look that its lease is over, whichever
// way it looks, and disturbs nobody who got the lock meanwhile. One process for each way to look.
func TestRealSuspendedProcessSeesTheEndAtItsFirstLook(t *testing.T) {
	t.Parallel()
	m := startMachines(t, 5)
	c := m.Client(quorum.Config{})
	workers := map[string]*worker{}
	tokens := map[string]int64{}
	for _, way := range []string{"err", "remaining", "done", "context"} {
		workers[way] = m.startWorker("look:" + way)
	}
	for way, w := range workers {
		line, err := w.out.ReadString('\n')
		m.Must(err)
		tokens[way], err = strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		m.Must(err)
		m.Must(w.cmd.Process.Signal(syscall.SIGSTOP))
	}
	suspended := time.Now()
	successors := map[string]*quorum.Lease{}
	for way := range workers {
		successors[way] = mustGet(t, c, way) // its keys have run out
		if successors[way].Token() <= tokens[way] {
			t.Errorf("token %d after %d", successors[way].Token(), tokens[way])
		}
	}
	time.Sleep(time.Until(suspended.Add(workerTTL + 100*time.Millisecond)))

	for way, w := range workers {
		m.Must(w.cmd.Process.Signal(syscall.SIGCONT))
		var seen look
		m.Must(json.NewDecoder(w.out).Decode(&seen))
		lost := quorum.ErrLost.Error()
		if seen != (look{Err: lost, Done: true, Context: "context canceled: " + lost}) {
			t.Errorf("looking at %s first: %+v, want the lease lost", way, seen)
		}
		_ = w.in.Close()
	}
	for _, w := range workers {
		w.wait()
	}
	for way, l := range successors {
		if err := l.Err(); err != nil {
			t.Errorf("the next holder of %s: %v", way, err)
		}
		m.eventually("the next holder is on all servers", m.counts(way, l.Holder(), "1"))
		mustRelease(t, l)
	}
	m.Clean(time.Second)
}

// Whoever has seen that a lease is over finds its contexts over, too: those who look do not wait for whoever ended it
// to get round to them.
func TestRealContextsAreOverWithTheirLease(t *testing.T) {
	m := startMachines(t, 3)
	c := m.Client(quorum.Config{})
	for range 5 {
		l := mustGet(t, c, "stock")
		var under []context.Context
		for range 2000 {
			under = append(under, l.Context(t.Context()))
		}
		released := make(chan error, 1)
		go func() { released <- l.Release(t.Context()) }()
		for l.Err() == nil {
			runtime.Gosched()
		}
		for _, ctx := range under {
			if ctx.Err() == nil {
				t.Fatal("a context outlives its lease")
			}
		}
		m.Must(<-released)
	}
}
