package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/redquorum/redquorum/bench/internal/nodes"
	"github.com/redquorum/redquorum/bench/internal/peers"
	"github.com/redquorum/redquorum/bench/internal/scenario"
)

const (
	normalDuration = 3 * time.Second
	quickDuration  = 200 * time.Millisecond
	leastDuration  = 10 * time.Millisecond
	mostDuration   = 10 * time.Minute
)

// options are what the command line says.
type options struct {
	nodes    []string
	compose  bool
	scenario *regexp.Regexp
	peers    []peers.Peer
	duration time.Duration
	quick    bool
	json     string
	html     string
}

const usage = `Measures redquorum beside other lock clients, on the same servers.

	go -C bench run . [flags]

Nodes are those of --nodes, or with --compose the containers of docker/compose.yaml, else redis-server processes where
there is a redis-server, else nodes embedded in this program.

Flags:
`

// parse reads the command line. What is wrong with it is an error that names the value and the rule, and flag.ErrHelp
// says that the help was printed to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	urls := fs.String("nodes", "", "comma-separated `URLs` of the nodes: redis://host:port,…")
	which := fs.String("scenario", "", "run the scenarios that the `regexp` matches: "+strings.Join(scenario.Names(), ", "))
	who := fs.String("peers", "", "comma-separated `names` of the clients (default all)")
	fs.BoolVar(&o.compose, "compose", false, "bring docker/compose.yaml up, measure there, and take it down")
	fs.DurationVar(&o.duration, "duration", 0, "how long each measurement takes (default 3s, with --quick 200ms)")
	fs.BoolVar(&o.quick, "quick", false, "a short run, to see that everything works; its figures mean little")
	fs.StringVar(&o.json, "json", "", "write the results as JSON to this `file`, - for the standard output")
	fs.StringVar(&o.html, "html", "bench.html", "write the report to this `file`; empty for none")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usage)
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("argument %q: there are only flags", fs.Arg(0))
	}
	var err error
	if *urls != "" {
		for u := range strings.SplitSeq(*urls, ",") {
			o.nodes = append(o.nodes, strings.TrimSpace(u))
		}
		if err := nodes.Validate(o.nodes); err != nil {
			return o, fmt.Errorf("--nodes: %w", err)
		}
		if o.compose {
			return o, errors.New("--nodes and --compose both say where to measure: want one of them")
		}
	}
	if o.scenario, err = regexp.Compile(*which); err != nil {
		return o, fmt.Errorf("--scenario %q is no regular expression: %w", *which, err)
	}
	if !matchesAny(o.scenario) {
		return o, fmt.Errorf("--scenario %q matches none of %s", *which, strings.Join(scenario.Names(), ", "))
	}
	if o.peers, err = peers.Select(*who); err != nil {
		return o, fmt.Errorf("--peers: %w", err)
	}
	given := false
	fs.Visit(func(f *flag.Flag) { given = given || f.Name == "duration" })
	switch {
	case given && (o.duration < leastDuration || o.duration > mostDuration):
		return o, fmt.Errorf("--duration %v: want %v to %v", o.duration, leastDuration, mostDuration)
	case given:
	case o.quick:
		o.duration = quickDuration
	default:
		o.duration = normalDuration
	}
	return o, nil
}

func matchesAny(which *regexp.Regexp) bool {
	for _, name := range scenario.Names() {
		if which.MatchString(name) {
			return true
		}
	}
	return false
}
