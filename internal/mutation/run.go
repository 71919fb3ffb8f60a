package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A suite is some tests of some packages.
type suite struct {
	packages  []string // from the module's root: "quorum"
	run, skip string   // regular expressions, as for go test
	timeout   time.Duration
	// whole runs every test, though one has failed already.
	whole bool
}

// wholeSuite is all tests of some packages that need no redis-server and are done in seconds. Those called
// TestReal... want servers; TestEverySourceIsThere compares the scripts with their files, which no overlay reaches.
func wholeSuite(packages ...string) suite {
	return suite{packages: packages, run: "^Test([^R]|R[^e]|Re[^a])", skip: "^(TestEverySourceIsThere|TestHammer)$"}
}

// of is the suite of tests named as "package.TestName".
func of(tests []string) suite {
	var packages, names []string
	for _, test := range tests {
		pkg, name, _ := strings.Cut(test, ".")
		packages, names = append(packages, pkg), append(names, name)
	}
	slices.Sort(packages)
	slices.Sort(names)
	return suite{
		packages: slices.Compact(packages),
		run:      "^(" + strings.Join(slices.Compact(names), "|") + ")$",
	}
}

// An outcome is what the tests said.
type outcome struct {
	passed []string // tests, as package.TestName
	failed []string // in the order in which they failed
	hung   bool     // the last of failed did not come to an end
	// broken is why nothing was tested: it does not compile, say. It is no catch.
	broken error
}

// overlay puts a text in the place of a file.
type overlay struct {
	file string
	text []byte
}

// test runs a suite, over a changed file if there is one. An error means that go could not be run.
func (s suite) test(ctx context.Context, root string, change *overlay) (outcome, error) {
	args := []string{"test", "-json", "-count=1", "-vet=off", "-p=1", "-ldflags=-w", "-timeout", s.timeout.String(), "-run", s.run}
	if s.skip != "" {
		args = append(args, "-skip", s.skip)
	}
	if !s.whole {
		args = append(args, "-failfast")
	}
	if change != nil {
		dir, err := os.MkdirTemp("", "mutation")
		if err != nil {
			return outcome{}, err
		}
		defer os.RemoveAll(dir)
		file, err := change.write(root, dir)
		if err != nil {
			return outcome{}, err
		}
		args = append(args, "-overlay", file)
	}
	for _, pkg := range s.packages {
		args = append(args, "./"+pkg)
	}
	// -timeout ends a test that hangs; this is for a compiler or a linker that does.
	ctx, cancel := context.WithTimeout(ctx, s.timeout+5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// No redis-server: what CI proves here it proves on any machine, and quickly.
	// And some variants only a crowd notices.
	cmd.Env = append(os.Environ(), "REDQUORUM_REQUIRE_REDIS=", "REDQUORUM_REDIS_SERVER=/nonexistent/redis-server", "REDQUORUM_LONG=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		return outcome{}, errors.Join(ctx.Err(), err)
	}
	o := read(out)
	if o.broken == nil && err != nil && len(o.failed) == 0 {
		o.broken = fmt.Errorf("go test: %w\n%s", err, said.String())
	}
	return o, nil
}

// write lays out what -overlay wants and returns the file to name there.
func (c *overlay) write(root, dir string) (string, error) {
	text := filepath.Join(dir, filepath.Base(c.file))
	replace := map[string]map[string]string{"Replace": {filepath.Join(root, c.file): text}}
	list, err := json.Marshal(replace)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, errors.Join(os.WriteFile(text, c.text, 0o600), os.WriteFile(file, list, 0o600))
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output, FailedBuild string }

// read makes an outcome of what go test -json wrote.
func read(out []byte) outcome {
	var o outcome
	running := map[string]string{} // by package: the test that began last and has not ended
	printed := map[string]*strings.Builder{}
	var compiler strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // not an event
		}
		test := e.Package[strings.LastIndex(e.Package, "/")+1:] + "." + e.Test
		top := !strings.Contains(e.Test, "/")
		switch {
		case e.Action == "build-output":
			compiler.WriteString(e.Output)
		case e.FailedBuild != "":
			o.broken = fmt.Errorf("it does not compile:\n%s", compiler.String())
		case e.Action == "output":
			if printed[e.Package] == nil {
				printed[e.Package] = new(strings.Builder)
			}
			printed[e.Package].WriteString(e.Output)
		case e.Test == "" && e.Action == "fail":
			o.fail(e.Package, running[e.Package], printed[e.Package])
		case e.Test == "" || !top:
		case e.Action == "run":
			running[e.Package] = test
		case e.Action == "pass":
			o.passed = append(o.passed, test)
			running[e.Package] = ""
		case e.Action == "skip":
			running[e.Package] = ""
		case e.Action == "fail":
			o.failed = append(o.failed, test)
			running[e.Package] = ""
		}
	}
	return o
}

// fail takes in that a package failed. If it was none of its tests that said so, the one that was running did not come
// to its end: it hung, or something panicked. Or it was what is looked at after the tests.
func (o *outcome) fail(pkg, running string, printed *strings.Builder) {
	text := ""
	if printed != nil {
		text = printed.String()
	}
	o.hung = o.hung || strings.Contains(text, "panic: test timed out")
	short := pkg[strings.LastIndex(pkg, "/")+1:]
	already := slices.ContainsFunc(o.failed, func(test string) bool { return strings.HasPrefix(test, short+".") })
	switch {
	case already:
	case running != "":
		o.failed = append(o.failed, running)
	case strings.Contains(text, "goleak:"):
		o.failed = append(o.failed, short+".TestMain (goroutines are left)")
	default:
		o.broken = fmt.Errorf("%s failed, and none of its tests:\n%s", pkg, text)
	}
}
