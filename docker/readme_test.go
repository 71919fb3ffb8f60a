package docker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/redquorum/redquorum/docker"
)

// The commands of README.md are run as its readers would: in this folder, by a shell, in their order. Only the project's
// name and its ports are others, so that a cluster that somebody has up by hand is left alone, and the image, where the
// environment names one.

// leaves are the commands that are shown, and what there has to be after each of them.
var leaves = map[string]func(c *composition){
	"docker-compose up -d":                    func(c *composition) { c.persists("no") },
	"PERSISTENCE=always docker-compose up -d": func(c *composition) { c.persists("yes") },
	"docker-compose down -v":                  (*composition).gone,
	"image/build":                             func(*composition) {}, // the next one runs what it built
	"REDQUORUM_REDIS_IMAGE=" + docker.LocalImage + " docker-compose up -d": func(c *composition) {
		c.persists("no")
		built, err := engine(c.t).ImageInspect(c.t.Context(), docker.LocalImage)
		ok(c.t, err)
		for _, n := range c.nodes() {
			if n.ImageID != built.ID {
				c.t.Errorf("%v is of image %s, want %s", n.Names, n.ImageID, built.ID)
			}
		}
	},
}

// elsewhere are the commands that this test is a part of.
var elsewhere = map[string]string{
	"go test ./...": "TestWithoutAnEngineTestsAreSkipped",
	"REDQUORUM_REQUIRE_DOCKER=1 go test ./...":       "TestWithoutAnEngineTestsFailWhereThereHasToBeOne",
	"go test -run 'TestSoak$' -v -soak.duration=10m": "a round of it is a test of its own",
	"../.ci/docker": "it is there",
}

// commandsShown are the lines of all blocks in sh, without what is said of them.
func commandsShown(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	ok(t, err)
	remark := regexp.MustCompile(`\s+#.*`)
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			lines = append(lines, strings.TrimSpace(remark.ReplaceAllString(line, "")))
		}
	}
	return lines
}

// Not in parallel with others: none of them is to start an image that is replaced in the same moment.
func TestCommandsOfTheReadmeRun(t *testing.T) {
	c := compose(t, "")
	if _, err := engine(t).ImageInspect(t.Context(), docker.LocalImage); err != nil {
		// To build it would change which one is taken by whoever comes after.
		missing(t, err)
	}
	c.env = append(c.env, "COMPOSE_PROJECT_NAME="+c.project, "PATH="+withCompose(t))
	t.Cleanup(func() {
		if out, err := c.run("down", "-v"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	seen := map[string]bool{}
	for _, line := range commandsShown(t) {
		seen[line] = true
		check, known := leaves[line]
		switch {
		case elsewhere[line] != "":
			continue
		case !known:
			t.Errorf("README.md shows %q, and nobody knows what there is to be after it", line)
			continue
		}
		shell := exec.Command("sh", "-c", line)
		shell.Env = c.env
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if check(c); t.Failed() {
			t.Fatalf("after %s", line)
		}
	}
	for line := range leaves {
		if !seen[line] {
			t.Errorf("README.md does not show %q", line)
		}
	}
	for line := range elsewhere {
		if !seen[line] {
			t.Errorf("README.md does not show %q, which is run elsewhere", line)
		}
	}
	if _, err := os.Stat("../.ci/docker"); err != nil {
		t.Error(err)
	}
}

// withCompose is a path in which there is docker-compose: README.md names the other way to call it in a remark.
func withCompose(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return path
	}
	folder := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(folder, "docker-compose"), []byte("#!/bin/sh\nexec docker compose \"$@\"\n"), 0o700)) //nolint:gosec // a program
	return folder + string(filepath.ListSeparator) + path
}

// persists checks that all five nodes answer, and whether they write a file.
func (c *composition) persists(want string) {
	c.t.Helper()
	for i := 1; i <= 5; i++ {
		node := dial(c.t, fmt.Sprintf("redis://127.0.0.1:%s%d", c.ports, i))
		eventually(c.t, "an answer", func() bool { return node.Ping(c.t.Context()).Err() == nil })
		if got := setting(c.t, node, "appendonly"); got != want {
			c.t.Errorf("node %d: appendonly is %q, want %q", i, got, want)
		}
	}
	if n := len(c.nodes()); n != 5 {
		c.t.Errorf("%d containers, want 5", n)
	}
}

// gone checks that neither a container nor a volume is left.
func (c *composition) gone() {
	c.t.Helper()
	for _, n := range c.nodes() {
		c.t.Errorf("%v is left", n.Names)
	}
	volumes, err := engine(c.t).VolumeList(c.t.Context(), client.VolumeListOptions{
		Filters: make(client.Filters).Add("label", "com.docker.compose.project="+c.project),
	})
	ok(c.t, err)
	for _, v := range volumes.Items {
		c.t.Errorf("volume %s is left", v.Name)
	}
}
