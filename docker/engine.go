package docker

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	// LocalImage is what image/build makes of the machine's own redis-server.
	LocalImage = "redquorum/redis:local"

	publicImage = "redis:7.2-alpine"
	imageEnv    = "REDQUORUM_REDIS_IMAGE"
)

// ErrNoEngine says that no docker engine answers on this machine.
var ErrNoEngine = errors.New("docker: no docker engine answers on this machine")

// connect returns a client of the engine, or ErrNoEngine.
func connect(ctx context.Context) (*testcontainers.DockerClient, error) {
	engine, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	if _, err := engine.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		_ = engine.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	if err := isHere(engine.DaemonHost()); err != nil {
		_ = engine.Close()
		return nil, err
	}
	return engine, nil
}

// isHere refuses an engine on another machine, whose loopback ports are not ours.
func isHere(host string) error {
	u, err := url.Parse(host)
	if err != nil {
		return fmt.Errorf("docker: the engine's address: %w", err)
	}
	switch name := u.Hostname(); {
	case u.Scheme == "unix", u.Scheme == "npipe", name == "localhost", name == "127.0.0.1", name == "::1":
		return nil
	}
	return fmt.Errorf("docker: the engine at %s is on another machine; its nodes would be reachable there only", host)
}

// chooseImage finds the image to run where the caller named none.
func chooseImage(ctx context.Context, engine *testcontainers.DockerClient) string {
	if image := os.Getenv(imageEnv); image != "" {
		return image
	}
	if _, err := engine.ImageInspect(ctx, LocalImage); err == nil {
		return LocalImage
	}
	return publicImage
}
