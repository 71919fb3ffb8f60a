package docker_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/redquorum/redquorum/docker"
	"github.com/redquorum/redquorum/quorum"
)

// composition is compose.yaml, run as a project of its own, on ports of its own.
type composition struct {
	t       *testing.T
	command []string
	env     []string
	project string
	ports   string
}

func compose(t *testing.T, persistence string) *composition {
	t.Helper()
	c := &composition{t: t, command: composeCommand(t), project: "redquorum" + uuid.NewString()[:8], ports: freeDecade(t)}
	e := engine(t)
	c.env = append(os.Environ(), "PERSISTENCE="+persistence, "PORTS="+c.ports,
		"DOCKER_HOST="+e.DaemonHost()) // the one that testcontainers found
	if os.Getenv("REDQUORUM_REDIS_IMAGE") == "" {
		if _, err := e.ImageInspect(t.Context(), docker.LocalImage); err == nil {
			c.env = append(c.env, "REDQUORUM_REDIS_IMAGE="+docker.LocalImage)
		}
	}
	return c
}

// composeCommand finds compose of either kind: the plugin, or the program of its own.
func composeCommand(t *testing.T) []string {
	t.Helper()
	start(t, 1, docker.Options{}) // or skip: no engine
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	path, err := exec.LookPath("docker-compose")
	if err != nil {
		missing(t, err)
	}
	return []string{path}
}

// decade is where the search for ports goes on: below those that the kernel hands
// out by itself, and not where another test binary is likely to search.
var decade atomic.Int64

func init() { decade.Store(rand.Int64N(1000)) }

// freeDecade finds the leading digits of five ports that nobody listens on, for
// nobody else in this process.
func freeDecade(t *testing.T) string {
	t.Helper()
next:
	for range 100 {
		decade := 1100 + decade.Add(1)
		for i := 1; i <= 5; i++ {
			l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d%d", decade, i))
			if err != nil {
				continue next
			}
			_ = l.Close()
		}
		return fmt.Sprint(decade)
	}
	t.Fatal("no five ports in a row are free")
	return ""
}

func (c *composition) run(args ...string) (output string, err error) {
	c.t.Helper()
	args = append(append(c.command[1:len(c.command):len(c.command)], "-p", c.project), args...)
	cmd := exec.Command(c.command[0], args...)
	cmd.Env = c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *composition) up() {
	c.t.Helper()
	c.t.Cleanup(func() {
		if out, err := c.run("down", "-v"); err != nil {
			c.t.Errorf("down: %v\n%s", err, out)
		}
	})
	out, err := c.run("up", "-d")
	if err != nil {
		c.t.Fatalf("up: %v\n%s", err, out)
	}
}

// nodes are the project's containers.
func (c *composition) nodes() []container.Summary {
	c.t.Helper()
	list, err := engine(c.t).ContainerList(c.t.Context(), client.ContainerListOptions{
		All:     true,
		Filters: make(client.Filters).Add("label", "com.docker.compose.project="+c.project),
	})
	ok(c.t, err)
	return list.Items
}

func TestComposeFile(t *testing.T) {
	for persistence, want := range map[string]map[string]string{
		"none":   {"appendonly": "no", "save": "", "maxmemory-policy": "noeviction"},
		"always": {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "maxmemory-policy": "noeviction"},
	} {
		t.Run(persistence, func(t *testing.T) {
			t.Parallel()
			c := compose(t, persistence)
			c.up()
			eventually(t, "five healthy nodes", func() bool {
				healthy := 0
				for _, n := range c.nodes() {
					if strings.Contains(n.Status, "(healthy)") {
						healthy++
					}
				}
				return healthy == 5
			})
			for _, n := range c.nodes() {
				for _, p := range n.Ports {
					if p.PublicPort != 0 && !p.IP.IsLoopback() {
						t.Errorf("%v is published on %v", n.Names, p.IP)
					}
				}
			}
			var urls []string
			for i := 1; i <= 5; i++ {
				urls = append(urls, fmt.Sprintf("redis://127.0.0.1:%s%d", c.ports, i))
			}
			for _, url := range urls {
				node := dial(t, url)
				for name, value := range want {
					if got := setting(t, node, name); got != value {
						t.Errorf("%s: %s is %q, want %q", url, name, got, value)
					}
				}
				if role := node.Do(t.Context(), "ROLE").Val(); !strings.HasPrefix(fmt.Sprint(role), "[master 0 []") {
					t.Errorf("%s: %v, want a master without replicas", url, role)
				}
			}
			locks, err := quorum.Open(quorum.Config{TTL: 10 * time.Second}, urls...)
			ok(t, err)
			defer locks.Close()
			ok(t, locks.Ping(t.Context()))
			lease, err := locks.TryAcquire(t.Context(), "stock")
			ok(t, err)
			ok(t, lease.Release(t.Context()))
		})
	}
}

func TestComposeRefusesOtherPersistence(t *testing.T) {
	t.Parallel()
	c := compose(t, "sometimes")
	out, err := c.run("up", "-d")
	if err == nil {
		c.env = append(c.env, "PERSISTENCE=none")
		_, _ = c.run("down", "-v")
		t.Fatalf("PERSISTENCE=sometimes was accepted:\n%s", out)
	}
	if !strings.Contains(out, "sometimes") || !strings.Contains(out, "node.yaml") {
		t.Errorf("the message names neither the value nor where to look:\n%s", out)
	}
	if n := len(c.nodes()); n != 0 {
		t.Errorf("%d containers were created nevertheless", n)
	}
}
