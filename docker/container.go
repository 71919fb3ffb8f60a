package docker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	redisPort = "6379/tcp"

	// labelKey marks a container as ours; its value is the cluster's.
	labelKey = "com.github.redquorum.cluster"

	readyTimeout = 30 * time.Second // far more than a server takes on a busy machine
	readyPoll    = 5 * time.Millisecond
)

// server is a container that runs redis-server.
type server struct {
	engine *testcontainers.DockerClient
	box    *testcontainers.DockerContainer
}

// command is that of node.yaml, for the kind of node.
func (p Persistence) command() []string {
	cmd := []string{"redis-server", "--save", ""}
	if p == Always {
		cmd = append(cmd, "--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no")
	} else {
		cmd = append(cmd, "--appendonly", "no")
	}
	return append(cmd, "--bind", "0.0.0.0", "--protected-mode", "no",
		"--maxmemory", "64mb", "--maxmemory-policy", "noeviction")
}

// launch creates a container and starts it. It answers once ready has returned.
func launch(ctx context.Context, engine *testcontainers.DockerClient, image, label string, p Persistence) (*server, error) {
	box, err := testcontainers.Run(ctx, image,
		testcontainers.WithLogger(silence{}),
		testcontainers.WithLabels(map[string]string{labelKey: label}),
		testcontainers.WithCmd(p.command()...),
		testcontainers.WithExposedPorts(redisPort),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{
				network.MustParsePort(redisPort): {{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}},
			}
		}),
	)
	if err != nil {
		return nil, errors.Join(explain(ctx, engine, image, err), testcontainers.TerminateContainer(box, testcontainers.StopTimeout(0)))
	}
	return &server{engine: engine, box: box}, nil
}

// explain says what to do about the two ways in which a machine without a registry
// lacks an image.
func explain(ctx context.Context, engine *testcontainers.DockerClient, image string, err error) error {
	err = fmt.Errorf("docker: running %s: %w", image, err)
	if _, inspect := engine.ImageInspect(ctx, image); errdefs.IsNotFound(inspect) {
		return fmt.Errorf("%w (where no registry can be reached, docker/image/build makes %s "+
			"of the machine's own redis-server; %s names another image)", err, LocalImage, imageEnv)
	}
	if strings.Contains(err.Error(), "reaper") {
		return fmt.Errorf("%w (testcontainers wants an image for its reaper; "+
			"where none can be pulled set TESTCONTAINERS_RYUK_DISABLED=true)", err)
	}
	return err
}

// ready waits until the server answers, and returns where it does. The engine
// chooses the port anew at each start.
func (s *server) ready(ctx context.Context) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	port, err := s.box.MappedPort(ctx, redisPort)
	if err != nil {
		return "", s.complain(ctx, err)
	}
	addr = net.JoinHostPort("127.0.0.1", port.Port())
	for {
		err := ping(ctx, addr)
		if err == nil {
			return addr, nil
		}
		state, stateErr := s.box.State(ctx)
		if stateErr == nil && !state.Running {
			return "", s.complain(ctx, fmt.Errorf("it exited with status %d", state.ExitCode))
		}
		select {
		case <-ctx.Done():
			return "", s.complain(context.WithoutCancel(ctx), fmt.Errorf("%w: %w", context.Cause(ctx), err))
		case <-time.After(readyPoll):
		}
	}
}

// complain adds what the server logged to the reason why it cannot be used.
func (s *server) complain(ctx context.Context, why error) error {
	return fmt.Errorf("docker: container %.12s is not ready: %w\n%s", s.box.GetContainerID(), why, s.log(ctx))
}

func (s *server) log(ctx context.Context) string {
	r, err := s.box.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var b bytes.Buffer
	_, _ = io.Copy(&b, r) // what can be had
	return b.String()
}

// ping asks for the sign of a server that is done loading.
func ping(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a proxy may accept for a server that is not there yet
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(reply, "+PONG") {
		return fmt.Errorf("PING was answered %q", strings.TrimSpace(reply))
	}
	return nil
}

func (s *server) start(ctx context.Context) error { return s.box.Start(ctx) }

func (s *server) stop(ctx context.Context) error { return s.box.Stop(ctx, nil) }

// kill ends the server with SIGKILL, paused or not, and returns when it is gone.
func (s *server) kill(ctx context.Context) error {
	_, err := s.engine.ContainerKill(ctx, s.box.GetContainerID(), client.ContainerKillOptions{Signal: "SIGKILL"})
	if err != nil {
		if state, e := s.box.State(ctx); e == nil && !state.Running {
			return nil // somebody else's work, or its own
		}
		return err
	}
	gone := s.engine.ContainerWait(ctx, s.box.GetContainerID(),
		client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-gone.Result:
		return nil
	case err := <-gone.Error:
		return err
	}
}

func (s *server) pause(ctx context.Context) error {
	_, err := s.engine.ContainerPause(ctx, s.box.GetContainerID(), client.ContainerPauseOptions{})
	return err
}

func (s *server) unpause(ctx context.Context) error {
	_, err := s.engine.ContainerUnpause(ctx, s.box.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

// remove kills the server and removes the container with its volumes.
func (s *server) remove(ctx context.Context) error {
	_, err := s.engine.ContainerRemove(ctx, s.box.GetContainerID(),
		client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}

// silence keeps testcontainers from telling of every container on standard error.
type silence struct{}

func (silence) Printf(string, ...any) {}
