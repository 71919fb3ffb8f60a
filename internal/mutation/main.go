package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"time"
)

func main() {
	var opts options
	flag.StringVar(&opts.only, "only", "", "only the variants whose name or file this regular expression matches")
	flag.BoolVar(&opts.core, "core", false, "only the variants that cost exclusion or tokens")
	flag.BoolVar(&opts.all, "all", false, "run whole suites, and tell every test that notices")
	flag.IntVar(&opts.parallel, "parallel", min(runtime.GOMAXPROCS(0), 4), "how many at a time")
	flag.DurationVar(&opts.timeout, "timeout", 20*time.Second, "how long the tests have before they count as hung")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := opts.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// options are the command line's.
type options struct {
	only     string
	core     bool
	all      bool
	parallel int
	timeout  time.Duration
}

func (o options) run(ctx context.Context) error {
	if flag.NArg() > 0 || o.parallel < 1 || o.timeout <= 0 {
		return errors.New("want no arguments, and -parallel and -timeout of more than 0; see -help")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	b := bench{
		root: strings.TrimSpace(string(where)), parallel: o.parallel, timeout: o.timeout, whole: o.all,
		out: os.Stdout,
	}
	variants := table()
	if o.core {
		var missing []string
		if variants, missing = theCore(variants); missing != nil {
			return fmt.Errorf("no variants called %q", missing)
		}
	}
	return b.table(ctx, matching(variants, only))
}
