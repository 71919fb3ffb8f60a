package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/internal/redisserver"
	"github.com/redquorum/redquorum/quorum"
)

// Other processes are this test binary, executed again: TestMain runs work instead of the tests where this variable
// says what to do.
const (
	taskVariable = "REDQUORUM_TEST_TASK"
	nodeVariable = "REDQUORUM_TEST_NODES"
)

// workerTTL is the TTL of the leases in other processes.
const workerTTL = time.Second

// work is what another process does, until its standard input ends. It returns the exit status.
func work(task string) int {
	c, err := quorum.Open(quorum.Config{TTL: workerTTL, NodeTimeout: 200 * time.Millisecond},
		strings.Split(os.Getenv(nodeVariable), ",")...)
	if err == nil {
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // the parent ended it, or died
			stop()
		}()
		if look, ok := strings.CutPrefix(task, "look:"); ok {
			err = hold(ctx, c, look)
		} else {
			err = contend(ctx, c)
		}
		_ = os.Stdout.Close() // the parent sees that the last release was made
		_ = c.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A grant is what a worker tells about one lease. From and To are readings of its clock, which on Linux is the same for
// all processes of the machine: two moments at which it could be sure to be the only holder.
type grant struct {
	Token    int64
	Holder   string
	From, To int64
	Lost     bool
}

// contend takes and gives back one lock, over and over, and tells of every lease.
func contend(ctx context.Context, c *quorum.Coordinator) error {
	out := json.NewEncoder(os.Stdout)
	for {
		l, err := c.Acquire(ctx, "stock")
		if ctx.Err() != nil {
			if err == nil {
				err = l.Release(context.Background())
			} else {
				err = nil
			}
			return err
		}
		if err != nil {
			return err
		}
		g := grant{Token: l.Token(), Holder: l.Holder(), From: clock.System().Now().Micros()}
		hold := rand.N(time.Millisecond)
		if rand.N(500) == 0 {
			hold = workerTTL * 2 / 3 // long enough to be renewed
		}
		for end := time.Now().Add(hold); ; time.Sleep(100 * time.Microsecond) {
			now := clock.System().Now().Micros()
			if g.Lost = l.Err() != nil; g.Lost {
				break
			}
			g.To = now // it was still ours after that reading, so it was ours then
			if time.Now().After(end) {
				break
			}
		}
		_ = l.Release(context.Background()) // no quorum, perhaps: then it goes on in the background
		if err := out.Encode(g); err != nil {
			return err
		}
	}
}

// A look is what a worker saw when it first looked at its lease after it had been suspended.
type look struct {
	Err       string
	Remaining time.Duration
	Done      bool
	Context   string
}

// hold takes the lock called first, tells so, and waits until it was suspended for longer than the TTL. Then it looks
// at its lease, at first in the way that is called first, and tells what it saw.
func hold(ctx context.Context, c *quorum.Coordinator, first string) error {
	l, err := c.Acquire(ctx, first)
	if err != nil {
		return err
	}
	under := l.Context(ctx)
	begun := clock.System().Now() // before the parent is told: it stops us at once
	fmt.Println(l.Token())
	for last := begun; ; {
		now := clock.System().Now()
		if now.Sub(last) > workerTTL {
			break
		}
		last = now
		if ctx.Err() != nil || now.Sub(begun) > patience {
			return errors.New("the worker was not suspended")
		}
		time.Sleep(time.Millisecond)
	}
	var seen look
	ways := map[string]func(){
		"err":       func() { seen.Err = fmt.Sprint(l.Err()) },
		"remaining": func() { seen.Remaining = l.Remaining() },
		"done": func() {
			select {
			case <-l.Done():
				seen.Done = true
			default:
			}
		},
		"context": func() { seen.Context = fmt.Sprint(under.Err(), ": ", context.Cause(under)) },
	}
	ways[first]()
	for way, look := range ways {
		if way != first {
			look()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// worker is another process.
type worker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// startWorker starts a process that does a task over the machines' servers.
func (m *machines) startWorker(task string) *worker {
	m.T.Helper()
	w := &worker{t: m.T, cmd: exec.Command(os.Args[0])}
	w.cmd.Env = append(os.Environ(), taskVariable+"="+task,
		nodeVariable+"="+strings.Join(redisserver.URLs(m.Servers), ","))
	w.cmd.Stderr = m.Log
	in, err := w.cmd.StdinPipe()
	m.Must(err)
	out, err := w.cmd.StdoutPipe()
	m.Must(err)
	w.in, w.out = in, bufio.NewReader(out)
	m.Must(w.cmd.Start())
	m.T.Cleanup(func() {
		_ = w.cmd.Process.Kill() // has ended, if all went well
		_ = w.cmd.Wait()
	})
	return w
}

// wait reports how the process ended. All of its output must have been read.
func (w *worker) wait() {
	w.t.Helper()
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("worker: %v", err)
	}
}

// ledger collects what several workers tell.
type ledger struct {
	mu     sync.Mutex
	grants []grant
	group  sync.WaitGroup
}

// follow writes down what a worker tells, until its end.
func (l *ledger) follow(w *worker) {
	l.group.Go(func() {
		for in := json.NewDecoder(w.out); ; {
			var g grant
			if err := in.Decode(&g); err != nil {
				if err != io.EOF {
					w.t.Error(err)
				}
				return
			}
			l.mu.Lock()
			l.grants = append(l.grants, g)
			l.mu.Unlock()
		}
	})
}

// len is how many leases were told of.
func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}
