package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelpNamesTheDemoAndShowsExamples(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"demo", "--help"}} {
		var out, complaints bytes.Buffer
		if status := execute(t.Context(), args, nil, &out, &complaints); status != exact {
			t.Errorf("%q: exit status %d: %s", args, status, &complaints)
		}
		for _, want := range []string{"Usage:", "Examples:", "redquorum demo --nodes redis://"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in:\n%s", args, want, &out)
			}
		}
		if strings.Contains(out.String(), "The worker process") {
			t.Errorf("%q: the help lists the hidden command:\n%s", args, &out)
		}
	}
}

func TestVersion(t *testing.T) {
	var out, complaints bytes.Buffer
	if status := execute(t.Context(), []string{"--version"}, nil, &out, &complaints); status != exact {
		t.Fatalf("exit status %d: %s", status, &complaints)
	}
	if !strings.HasPrefix(out.String(), "redquorum ") {
		t.Errorf("got %q", &out)
	}
}

// Every refusal names the value and the rule, but never a password.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"demo --stock 9", []string{`"9"`, "--stock", "from 10 to 100000"}},
		{"demo --stock many", []string{`"many"`, "--stock", "from 10 to 100000"}},
		{"demo --processes 0", []string{`"0"`, "--processes", "from 1 to 64"}},
		{"demo --workers 65", []string{`"65"`, "--workers", "from 1 to 64"}},
		{"demo --ttl 1ms", []string{`"1ms"`, "--ttl", "from 200ms to 1m0s"}},
		{"demo --ttl -2s", []string{`"-2s"`, "--ttl", "from 200ms to 1m0s"}},
		{"demo --ttl 2", []string{`"2"`, "--ttl", "such as 2s"}},
		{"demo --timeout never", []string{`"never"`, "--timeout", "from 1s to 1h0m0s"}},
		{"demo --timeout 10s --ttl 2s", []string{"10s", "8 times the TTL, 16s"}},
		{"demo --nodes=", []string{"--nodes", "names no node"}},
		{"demo --nodes=,", []string{"--nodes", "names no node"}},
		{"demo --nodes -", []string{"--nodes", "names no node"}},
		{"demo --nodes redis://127.0.0.1:1,redis://localhost:1", []string{"same address", "127.0.0.1:1"}},
		{"demo --nodes http://u:s3cret@h", []string{`"http"`, "want redis"}},
		{"demo --nodes redis://u:s3cret@h:port", []string{"node 1 of 1", "host:port"}},
		{`demo --nodes redis://u:"s3cret@h`, []string{"node 1 of 1", "host:port"}},
		{"demo -nodes=redis://u:s3cret@h", []string{"unknown flag", "--help"}},
		{"demo --urls=redis://u:s3cret@h", []string{"unknown flag", "--urls"}},
		{"demo redis://u:s3cret@h", []string{"no arguments", "--nodes"}},
		{"redis://u:s3cret@h", []string{"no arguments", "--nodes"}},
		{"inspect", []string{"NAME", "--help"}},
		{"inspect --watch", []string{"NAME", "--help"}},
		{"inspect --watch=1", []string{`"1"`, "--watch", "from 100ms to 1h0m0s"}},
		{"inspect --watch 1s backup", []string{"want --watch=1s"}},
		{"inspect backup --watch 1s", []string{"want --watch=1s"}},
		{"inspect a b", []string{"2 arguments", "NAME"}},
		{"ls --limit 0", []string{`"0"`, "--limit", "from 1 to 100000"}},
		{"ls --timeout 1ms", []string{`"1ms"`, "--timeout", "from 100ms to 1h0m0s"}},
		{"ls shop:[", []string{`"shop:["`, `no ] ends what begins with "["`, `\[`}},
		{"ls shop:[a-]x", []string{`no ] ends what begins with "[a-]x"`}},
		{`ls \[[\]`, []string{`no ] ends what begins with "[\\]"`}},
		{"ls [^", []string{`no ] ends what begins with "[^"`}},
		{"ls shop:[]*", []string{"nothing is in []"}},
		{`ls [a]\`, []string{"nothing follows"}},
		{"ls a b", []string{"at most 1 arg"}},
		{"ls --nodes redis://u:s3cret@h:port", []string{"node 1 of 1", "host:port"}},
		{"doctor --ttl 0s", []string{`"0s"`, "--ttl", "from 1ms to 24h0m0s"}},
		{"doctor now", []string{`"now"`, "--help"}},
		{"doctor redis://u:s3cret@h", []string{"no arguments", "--nodes"}},
		{"doctor --nodes redis://u:s3cret@h:port", []string{"node 1 of 1", "host:port"}},
		{"completion foo", []string{`"foo"`, "completion --help"}},
		{"completion redis://u:s3cret@h", []string{"no arguments", "--nodes"}},
		{"demonstrate", []string{`"demonstrate"`, "--help"}},
		{"demo now", []string{`"now"`, "--help"}},
	} {
		var out, complaints bytes.Buffer
		status := execute(t.Context(), strings.Fields(c.args), strings.NewReader(" \n"), &out, &complaints)
		if status != failed {
			t.Errorf("%s: exit status %d, want %d", c.args, status, failed)
		}
		for _, want := range c.want {
			if !strings.Contains(complaints.String(), want) {
				t.Errorf("%s: no %q in %q", c.args, want, &complaints)
			}
		}
		if all := out.String() + complaints.String(); strings.Contains(all, "s3cret") {
			t.Errorf("%s: prints the password: %q", c.args, all)
		}
	}
}

func TestHelpSaysHowOftenAWatchLooks(t *testing.T) {
	var out, complaints bytes.Buffer
	if status := execute(t.Context(), []string{"inspect", "--help"}, nil, &out, &complaints); status != exact || !strings.Contains(out.String(), "--watch time[=1s]") {
		t.Errorf("exit status %d:\n%s%s", status, &out, &complaints)
	}
}

// What a shell completes: commands, flags, and no file where none belongs.
func TestCompletion(t *testing.T) {
	for line, want := range map[string][]string{
		"":                  {"doctor\t", "inspect\t", "ls\t", "release\t", "run\t", ":4\n"},
		"ls --":             {"--limit\t", "--timeout\t", "--json\t", "--nodes\t"},
		"ls ":               {":4\n"},
		"doctor --s":        {"--strict\t"},
		"doctor --ttl":      {"--ttl\t"},
		"doctor ":           {":4\n"},
		"inspect ":          {":4\n"},
		"release ":          {":4\n"},
		"run ":              {":4\n"},
		"run stock -- ":     {":0\n"},
		"run stock -- tar ": {":0\n"},
		"completion ":       {"bash\t", "zsh\t", ":4\n"},
	} {
		var out, complaints bytes.Buffer
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if status := execute(t.Context(), args, nil, &out, &complaints); status != exact {
			t.Errorf("%q: exit status %d: %s", line, status, &complaints)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%q: no %q in:\n%s", line, text, &out)
			}
		}
	}
}

func TestEveryCommandHasExamplesAndSaysItsStatuses(t *testing.T) {
	for _, cmd := range rootCommand().Commands() {
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		if !strings.Contains(cmd.Example, "redquorum "+cmd.Name()) || !strings.Contains(cmd.Long, "Exit status: ") {
			t.Errorf("%s has no example, or does not say its exit statuses", cmd.Name())
		}
	}
}
