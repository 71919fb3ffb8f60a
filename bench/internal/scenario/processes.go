package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/peers"
)

// process is a worker of ours.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	errors  strings.Builder
	lastOut io.ReadCloser
}

// startProcesses starts n workers at once, and returns when all are ready.
func startProcesses(ctx context.Context, n int, o orders) ([]*process, error) {
	said, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []*process
	for range n {
		p := &process{cmd: exec.CommandContext(ctx, program)}
		p.cmd.Env = append(os.Environ(), workerEnv+"="+string(said))
		p.cmd.Stderr = &p.errors
		p.cmd.WaitDelay = 5 * time.Second
		if p.in, err = p.cmd.StdinPipe(); err == nil {
			p.lastOut, err = p.cmd.StdoutPipe()
		}
		if err == nil {
			err = p.cmd.Start()
		}
		if err != nil {
			return nil, errors.Join(err, endProcesses(all))
		}
		p.out = json.NewDecoder(p.lastOut)
		all = append(all, p)
	}
	for _, p := range all {
		if _, err := p.reply(); err != nil {
			return nil, errors.Join(err, endProcesses(all))
		}
	}
	return all, nil
}

func (p *process) tell(command string) error {
	_, err := io.WriteString(p.in, command+"\n")
	return err
}

func (p *process) reply() (reply, error) {
	var r reply
	if err := p.out.Decode(&r); err != nil {
		return r, fmt.Errorf("a worker process ended: %w", err)
	}
	return r, nil
}

// ask has a command carried out that must not fail.
func (p *process) ask(command string) (reply, error) {
	if err := p.tell(command); err != nil {
		return reply{}, err
	}
	return p.done()
}

func (p *process) done() (reply, error) {
	r, err := p.reply()
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	return r, err
}

// endProcesses lets them end, and waits until they have.
func endProcesses(all []*process) error {
	for _, p := range all {
		_ = p.in.Close()
	}
	var errs []error
	for _, p := range all {
		_, _ = io.Copy(io.Discard, p.lastOut)
		if err := p.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("a worker process: %w: %s", err, strings.TrimSpace(p.errors.String())))
		}
	}
	return errors.Join(errs...)
}

func processesSteps(e *Env, p peers.Peer) []Step {
	if p.NoLock {
		return nil
	}
	n := 16
	if e.Quick {
		n = 4
	}
	s := Step{Peer: p, shape: measure.Result{Processes: n, Callers: 1, Measured: acquireLatency}}
	s.run = func(ctx context.Context, r *measure.Result) (err error) {
		all, err := startProcesses(ctx, n, orders{
			Peer: p.Name, URLs: e.Nodes.URLs, Name: e.name(r), Length: e.Duration,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, endProcesses(all)) }()
		for _, w := range all {
			if err := w.tell("run"); err != nil {
				return err
			}
		}
		replies := make([]reply, n)
		var g errgroup.Group
		for i, w := range all {
			g.Go(func() error {
				var err error
				replies[i], err = w.reply()
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		sum(replies, e.Duration, r)
		return nil
	}
	return []Step{s}
}

// sum is what the workers did together.
func sum(replies []reply, length time.Duration, r *measure.Result) {
	took := measure.NewHistogram()
	var turns []turn
	var cpu time.Duration
	for _, p := range replies {
		turns = append(turns, p.Turns...)
		cpu += p.CPU
		r.Errors += p.Failed
		if r.FirstError == "" {
			r.FirstError = p.Err
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.Got, b.Got) })
	for i, t := range turns {
		took.Record(time.Duration(t.Got - t.Asked))
		if i > 0 && t.Got < turns[i-1].Releasing {
			r.Overlaps++
		}
	}
	r.Pairs = int64(len(turns))
	r.Seconds = length.Seconds()
	r.PerSecond = float64(r.Pairs) / r.Seconds
	if r.Pairs > 0 {
		r.CPUMicros = float64(cpu.Nanoseconds()) / 1e3 / float64(r.Pairs)
	}
	r.Latency = took.Latency()
}
