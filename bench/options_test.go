package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/bench/internal/peers"
)

func TestWrongFlagsNameTheValueAndTheRule(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--nodes ,", []string{"--nodes", "node 1 is empty", "redis://host:port"}},
		{"--nodes redis://a:1,redis://a:1", []string{"--nodes", "redis://a:1", "another server"}},
		{"--nodes a:1", []string{"--nodes", "redis://host:port"}},
		{"--nodes redis://a:1 --compose", []string{"--nodes", "--compose", "one of them"}},
		{"--scenario (", []string{"--scenario", `"("`, "regular expression"}},
		{"--scenario nothing", []string{"--scenario", `"nothing"`, "single, distinct"}},
		{"--peers redquorum,etcd", []string{"--peers", `"etcd"`, "redsync"}},
		{"--duration 1ms", []string{"--duration", "1ms", "10ms to 10m0s"}},
		{"--duration 0", []string{"--duration", "0s", "10ms to 10m0s"}},
		{"--duration -1s", []string{"--duration", "-1s", "10ms to 10m0s"}},
		{"--duration 1h", []string{"--duration", "1h0m0s", "10ms to 10m0s"}},
		{"--duration soon", []string{"duration", `"soon"`}},
		{"--fast", []string{"-fast", "not defined"}},
		{"fast", []string{`"fast"`, "only flags"}},
	} {
		_, err := parse(strings.Fields(c.args), &bytes.Buffer{})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", c.args, err, want)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	o, err := parse(nil, nil)
	if err != nil || o.duration != normalDuration || o.quick || o.html != "bench.html" || len(o.nodes) != 0 || len(o.peers) != len(peers.All()) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse([]string{"--quick"}, nil); err != nil || o.duration != quickDuration {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse([]string{"--quick", "--duration", "1s", "--html", ""}, nil); err != nil || o.duration != time.Second || o.html != "" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestHelpTellsOfEveryFlag(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	for _, name := range []string{"nodes", "compose", "scenario", "peers", "duration", "quick", "json", "html"} {
		if !strings.Contains(out.String(), "-"+name) {
			t.Errorf("nothing of --%s in:\n%s", name, out.String())
		}
	}
}
