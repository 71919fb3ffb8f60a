//go:build unix

package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
)

// The commands of all documents are run as their readers would: all of one document by one shell, in a new folder, with
// this checkout's redquorum in the path, and with five servers for the nodes. 10.0.0.1 to 10.0.0.5, at port 6379, are
// these servers' addresses in what is typed and in what is printed.
//
// A block in sh has to succeed, line by line. A block in console shows what its commands print, failures too. What cannot
// be run is marked: <!-- not run: and why --> stands above the fence.

// elsewhere are commands that are shown and not run here, and why.
var elsewhere = map[string]string{
	"go test ./...": "this test is a part of it",
}

// patience is how long the commands of one document may take: some build programs, on a machine that is busy.
const patience = 5 * time.Minute

func TestCommandsOfTheDocumentsRun(t *testing.T) {
	shown, seen := 0, map[string]bool{}
	var folder string // of the programs
	for _, document := range documents(t) {
		page := &page{}
		for _, b := range blocks(t, document) {
			page.add(t, b, seen)
		}
		shown += page.shown
		if page.run == 0 {
			continue
		}
		if folder == "" {
			redisserver.Require(t)
			folder = build(t)
		}
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			page.try(t, folder)
		})
	}
	if shown == 0 {
		t.Error("no document shows a command")
	}
	for command, why := range elsewhere {
		if !seen[command] {
			t.Errorf("no document shows %q (%s)", command, why)
		}
	}
}

// build builds what the commands call.
func build(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	build := exec.Command("go", "build", "-o", folder, "./cmd/redquorum")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// A page is the commands of one document.
type page struct {
	shown, run int
	script     strings.Builder
	steps      []printed
}

// printed is a step whose output is compared with what is shown.
type printed struct {
	block
	step
	file string
}

// add adds what a block has to run. seen takes in what it leaves to others.
func (p *page) add(t *testing.T, b block, seen map[string]bool) {
	t.Helper()
	switch b.language {
	case "sh", "console":
	case "bash", "shell", "zsh", "shellsession":
		t.Errorf("%v: the language is %s: want sh for what is run, console for what it prints besides", b, b.language)
		return
	default:
		if b.notRun != "" {
			t.Errorf("%v is of no language that would be run", b)
		}
		return
	}
	p.shown++
	if b.notRun != "" {
		return
	}
	p.run++
	fmt.Fprintf(&p.script, "echo '%v' >\"$REDQUORUM_PLACE\"\n", b)
	if ofCheckout.MatchString(b.text) {
		p.script.WriteString("cd \"$REDQUORUM_CHECKOUT\"\n")
		defer p.script.WriteString("cd \"$REDQUORUM_SCRATCH\"\n")
	}
	if b.language == "sh" {
		p.script.WriteString("set -e\n")
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(line, " #")
			command = strings.TrimSpace(command)
			if _, ok := elsewhere[command]; ok {
				seen[command] = true
				continue
			}
			p.script.WriteString(line)
		}
		return
	}
	p.script.WriteString("set +e\n")
	for _, s := range b.steps(t) {
		file := fmt.Sprintf("printed.%d", len(p.steps))
		p.steps = append(p.steps, printed{b, s, file})
		fmt.Fprintf(&p.script, "{\n%s} >\"$REDQUORUM_PRINTED/%s\" 2>&1\n", s.command, file)
	}
}

// ofCheckout are commands for whoever has the sources.
var ofCheckout = regexp.MustCompile(`(?m)^(go|make) `)

// stands are the addresses that stand for a node's.
var stands = regexp.MustCompile(`\b10\.0\.0\.([1-5])(:6379)?\b`)

// try runs the commands.
func (p *page) try(t *testing.T, programs string) {
	servers := redisserver.StartN(t, 5)
	settle := func(text string) string {
		return stands.ReplaceAllStringFunc(text, func(address string) string {
			return servers[stands.FindStringSubmatch(address)[1][0]-'1'].Addr()
		})
	}
	scratch, aside := t.TempDir(), t.TempDir()
	place, script := filepath.Join(aside, "place"), filepath.Join(aside, "script")
	if err := os.WriteFile(script, []byte(settle(p.script.String())), 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", script)
	shell.Dir = scratch
	shell.Env = append(environment(t),
		"HOME="+scratch,
		"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"REDQUORUM_NODES="+strings.Join(redisserver.URLs(servers), ","),
		"REDQUORUM_PLACE="+place, "REDQUORUM_PRINTED="+aside,
		"REDQUORUM_SCRATCH="+scratch, "REDQUORUM_CHECKOUT="+checkout(t))
	// What it starts and leaves running ends with it.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	log := filepath.Join(aside, "log")
	out, err := os.Create(log) // a pipe would wait for whatever is left
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	shell.Stdout, shell.Stderr = out, out
	err = shell.Run()
	if shell.Process != nil {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // there may be nobody left
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.TrimSpace(read(t, place)), err, read(t, log))
	}
	for _, s := range p.steps {
		printed, err := os.ReadFile(filepath.Join(aside, s.file))
		if err != nil {
			continue // the shell did not get there, and said so
		}
		if shown := settle(s.prints); !agrees(shown, string(printed)) {
			t.Errorf("%v: %s prints\n%s\nand not, as shown,\n%s", s.block, strings.TrimSpace(s.command), printed, shown)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func checkout(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is this process's, with the caches of Go where they are: the home of the commands is another one.
func environment(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Split(string(out), "\n")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "XDG_CONFIG_HOME" || strings.HasPrefix(name, "REDISCLI_") // what its user has set for its tools
	})
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		env = append(env, name+"="+values[i])
	}
	return env
}
