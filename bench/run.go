package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/bench/internal/report"
	"github.com/redquorum/redquorum/bench/internal/scenario"
)

// run measures, and writes to out what was measured, and to progress what is going on. When ctx ends, it writes what it
// has got so far.
func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	set, err := provide(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	fmt.Fprintln(progress, "nodes:", set.Describe())

	env := &scenario.Env{
		Nodes:    set,
		Peers:    o.peers,
		Duration: o.duration,
		Quick:    o.quick,
		Prefix:   fmt.Sprintf("bench:%d:%d", os.Getpid(), time.Now().UnixMilli()),
	}
	r := &report.Report{
		Started:      time.Now().UTC().Truncate(time.Second),
		Nodes:        set.Describe(),
		Server:       set.Version(ctx),
		Quick:        o.quick,
		Seconds:      o.duration.Seconds(),
		System:       runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:         runtime.NumCPU(),
		Go:           runtime.Version(),
		Clients:      report.Clients(o.peers),
		Measurements: nil,
	}
	failed := measureAll(ctx, env, scenario.Plan(env, o.scenario), report.NewProgress(progress), r)
	return errors.Join(failed, write(r, o, out, progress))
}

// provide finds the nodes.
func provide(ctx context.Context, o options, progress io.Writer) (*nodes.Set, error) {
	if o.compose {
		return nodes.Compose(ctx, progress)
	}
	return nodes.Choose(o.nodes)
}

func measureAll(ctx context.Context, env *scenario.Env, plan []scenario.Step, progress *report.Progress, r *report.Report) error {
	defer progress.Done()
	var failed error
	for i, step := range plan {
		progress.Step(i, len(plan), step.String()+": "+step.Peer.Name)
		result, err := step.Run(ctx, env)
		if ctx.Err() != nil {
			r.Interrupted = true
			return errors.Join(failed, fmt.Errorf("interrupted after %d of %d measurements", i, len(plan)))
		}
		failed = errors.Join(failed, err)
		r.Measurements = append(r.Measurements, result)
	}
	progress.Step(len(plan), len(plan), "done")
	return failed
}

// write hands out what was measured, in all forms that were asked for.
func write(r *report.Report, o options, out, progress io.Writer) error {
	var errs []error
	if o.json == "-" {
		errs = append(errs, writeJSON(out, r))
	} else {
		errs = append(errs, report.Table(out, r))
		if o.json != "" {
			errs = append(errs, toFile(o.json, progress, func(w io.Writer) error { return writeJSON(w, r) }))
		}
	}
	if o.html != "" {
		errs = append(errs, toFile(o.html, progress, func(w io.Writer) error { return report.HTML(w, r) }))
	}
	return errors.Join(errs...)
}

func writeJSON(w io.Writer, r *report.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// toFile writes a file, whole or not at all.
func toFile(path string, progress io.Writer, fill func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".bench-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there once it was renamed
	err = errors.Join(fill(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	fmt.Fprintln(progress, "wrote", path)
	return nil
}
