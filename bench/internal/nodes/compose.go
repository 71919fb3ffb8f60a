package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	composeFile    = "docker/compose.yaml"
	composeProject = "redquorum-bench"
	localImage     = "redquorum/redis:local"
	imageEnv       = "REDQUORUM_REDIS_IMAGE"

	startTimeout = 30 * time.Second // of a container that is up, until it answers
	downTimeout  = time.Minute
)

// compose runs one of the two commands that there are.
type compose struct {
	command []string
	env     []string
	out     io.Writer
}

// Compose brings docker/compose.yaml up, as a project of its own, and returns when all nodes answer. Close takes it down
// again, with its volumes. What the engine says goes to out.
func Compose(ctx context.Context, out io.Writer) (*Set, error) {
	file, err := findCompose()
	if err != nil {
		return nil, err
	}
	c, err := findCommand(ctx, file, out)
	if err != nil {
		return nil, err
	}
	if err := c.run(ctx, out, "up", "-d"); err != nil {
		return nil, errors.Join(fmt.Errorf("compose up: %w", err), c.down())
	}
	s := &Set{Kind: Composed, stop: c.down}
	for i := range Count {
		addr, err := c.address(ctx, fmt.Sprintf("redis-%d", i+1))
		if err == nil {
			err = await(ctx, addr)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("compose: node %d: %w", i+1, err), c.down())
		}
		s.URLs = append(s.URLs, "redis://"+addr)
	}
	return s, nil
}

// findCompose looks here and in the folders above.
func findCompose() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		file := filepath.Join(dir, composeFile)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("--compose: no %s here or above: run it in the repository", composeFile)
		}
		dir = filepath.Dir(dir)
	}
}

func findCommand(ctx context.Context, file string, out io.Writer) (*compose, error) {
	if said, err := exec.CommandContext(ctx, "docker", "version").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("--compose: no docker engine answers: %w: %s", err, lastLine(said))
	}
	c := &compose{out: out, env: os.Environ()}
	switch {
	case exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil:
		c.command = []string{"docker", "compose"}
	case exec.CommandContext(ctx, "docker-compose", "version").Run() == nil:
		c.command = []string{"docker-compose"}
	default:
		return nil, errors.New("--compose: neither docker compose nor docker-compose is there")
	}
	c.command = append(c.command, "-f", file, "-p", composeProject)
	if os.Getenv(imageEnv) == "" && exec.CommandContext(ctx, "docker", "image", "inspect", localImage).Run() == nil {
		c.env = append(c.env, imageEnv+"="+localImage) // no registry is needed then
	}
	return c, nil
}

func (c *compose) run(ctx context.Context, out io.Writer, args ...string) error {
	args = append(c.command[1:len(c.command):len(c.command)], args...)
	cmd := exec.CommandContext(ctx, c.command[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, out, c.out
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

// down is not bounded by the run's context: an interrupted run must leave nothing either.
func (c *compose) down() error {
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	if err := c.run(ctx, c.out, "down", "-v", "--remove-orphans"); err != nil {
		return fmt.Errorf("compose down: %w; by hand: docker-compose -p %s -f %s down -v", err, composeProject, composeFile)
	}
	return nil
}

// address is where a service's port is published.
func (c *compose) address(ctx context.Context, service string) (string, error) {
	var said bytes.Buffer
	if err := c.run(ctx, &said, "port", service, "6379"); err != nil {
		return "", err
	}
	addr := strings.TrimSpace(said.String())
	if addr == "" {
		return "", errors.New("its port is not published")
	}
	return addr, nil
}

// await returns when the server answers.
func await(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{
		Addr:                     addr,
		DialerRetries:            1,
		MaxRetries:               -1,
		PoolSize:                 1000, // after so many failed dials a goroutine tries alone, and outlives Close
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func lastLine(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return lines[len(lines)-1]
}
