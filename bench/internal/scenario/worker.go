package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/peers"
)

// workerEnv has the orders of a process that we started from our own program.
const workerEnv = "REDQUORUM_BENCH_WORKER"

// orders are what a worker is told at its start. Then it reads commands, a line each: lock, unlock, and run, which
// locks and unlocks for Length. It answers each with a reply, and ends with its input, so with us.
type orders struct {
	Peer   string
	URLs   []string
	Name   string
	Length time.Duration
}

// A reply's times are in nanoseconds of the machine's clock, which the processes share.
type reply struct {
	At    int64  `json:",omitempty"`
	Err   string `json:",omitempty"`
	Turns []turn `json:",omitempty"`
	// Failed is how many tries ended with an error, of which Err is the first.
	Failed int64 `json:",omitempty"`
	CPU    time.Duration
}

// A turn is one hold.
type turn struct{ Asked, Got, Releasing int64 }

// IsWorker reports whether this process was started to be one. Then Worker is its main program.
func IsWorker() bool { return os.Getenv(workerEnv) != "" }

// Worker carries out orders until its input ends.
func Worker(in io.Reader, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(workerEnv)), &o); err != nil {
		return err
	}
	which, err := peers.Select(o.Peer)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	locker, err := which[0].Open(ctx, o.URLs, 0)
	if err != nil {
		return err
	}
	defer locker.Close()
	if err := warm(ctx, locker, 1, distinct(fmt.Sprintf("%s:%d", o.Name, os.Getpid()))); err != nil {
		return err
	}

	commands := make(chan string)
	go func() { // ends with the input
		defer cancel()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			select {
			case commands <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	w := worker{orders: o, locker: locker}
	answers := json.NewEncoder(out)
	if err := answers.Encode(reply{}); err != nil { // ready
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case command := <-commands:
			r := w.do(ctx, strings.TrimSpace(command))
			if ctx.Err() != nil {
				return nil
			}
			if err := answers.Encode(r); err != nil {
				return err
			}
		}
	}
}

// lockLimit is longer than any client takes that works, polling included: with a node that hangs redsync takes 15 s, since it waits for
// the timeouts of its Redis client at each step.
const lockLimit = 20 * time.Second

var errLockLimit = fmt.Errorf("not acquired after %v, though it was free", lockLimit)

type worker struct {
	orders
	locker peers.Locker
	lease  peers.Lease
}

func (w *worker) do(ctx context.Context, command string) reply {
	var err error
	var r reply
	switch command {
	case "lock":
		// Ended with the worker only, unless it takes too long: for some clients the context is the lease's, too.
		ctx, cancel := context.WithCancelCause(ctx)
		limit := time.AfterFunc(lockLimit, func() { cancel(errLockLimit) })
		w.lease, err = w.locker.Lock(ctx, w.Name)
		r.At = now()
		limit.Stop()
		if err != nil {
			err = errors.Join(err, context.Cause(ctx))
			cancel(nil)
		}
	case "unlock":
		r.At = now()
		err = w.lease.Release(ctx)
	case "run":
		return w.run(ctx)
	default:
		err = errors.New("no such command: " + command)
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// run takes turns for as long as is said, and until it has had one: who had none by then shows how long it waited.
func (w *worker) run(ctx context.Context) (r reply) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(w.Length+lockLimit, cancel).Stop()
	var had, over atomic.Bool
	defer time.AfterFunc(w.Length, func() {
		over.Store(true)
		if had.Load() {
			cancel()
		}
	}).Stop()
	cpu := measure.CPU()
	for ctx.Err() == nil {
		t := turn{Asked: now()}
		lease, err := w.locker.Lock(ctx, w.Name)
		if err == nil {
			t.Got = now()
			t.Releasing = now()
			err = lease.Release(context.WithoutCancel(ctx))
		}
		switch {
		case err == nil:
			r.Turns = append(r.Turns, t)
			had.Store(true)
			if over.Load() {
				cancel()
			}
		case ctx.Err() == nil:
			r.Failed++
			if r.Err == "" {
				r.Err = err.Error()
			}
			time.Sleep(afterError)
		}
	}
	r.CPU = measure.CPU() - cpu
	return r
}

func now() int64 { return time.Now().UnixNano() }
