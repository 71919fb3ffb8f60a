package docker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/redquorum/redquorum/docker"
)

// engine is docker itself, past the code under test.
func engine(t *testing.T) *testcontainers.DockerClient {
	t.Helper()
	c, err := testcontainers.NewDockerClientWithOpts(t.Context())
	ok(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func exists(t *testing.T, e *testcontainers.DockerClient, id string) bool {
	t.Helper()
	_, err := e.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// volumes are the names of a container's volumes.
func volumes(t *testing.T, e *testcontainers.DockerClient, id string) []string {
	t.Helper()
	c, err := e.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	ok(t, err)
	var names []string
	for _, m := range c.Container.Mounts {
		names = append(names, m.Name)
	}
	return names
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	cluster := start(t, 3, docker.Options{Persistence: docker.Always})
	e := engine(t)
	var ids, vols []string
	note := func() {
		for _, id := range cluster.Containers() {
			ids = append(ids, id)
			vols = append(vols, volumes(t, e, id)...)
		}
	}
	note()
	ok(t, cluster.Restart(0, false)) // in another container
	note()
	ok(t, cluster.Kill(0))
	ok(t, cluster.Pause(1))
	ok(t, cluster.Partition(2))
	ok(t, cluster.Close())
	for _, id := range ids {
		if exists(t, e, id) {
			t.Errorf("container %s is still there", id)
		}
	}
	if len(vols) == 0 {
		t.Error("the image has no volume: what becomes of one was not tested")
	}
	for _, v := range vols {
		if _, err := e.VolumeInspect(t.Context(), v, client.VolumeInspectOptions{}); !errdefs.IsNotFound(err) {
			t.Errorf("volume %s is still there (%v)", v, err)
		}
	}
}

const orphanEnv = "REDQUORUM_TEST_START_AND_HANG"

// startAndHang is a program that starts a cluster and never closes it.
func startAndHang() {
	c, err := docker.Start(context.Background(), 2, docker.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(c.Containers(), " "))
	select {}
}

func TestContainersDieWithTheirProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the lifeline is a shell")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		missing(t, err)
	}
	start(t, 1, docker.Options{}) // or skip
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	ok(t, cmd.Process.Kill())
	_ = cmd.Wait()
	ok(t, err)
	ids := strings.Fields(line)
	if len(ids) != 2 || len(ids[0]) != 64 {
		t.Fatalf("the program said %q", line)
	}
	e := engine(t)
	for _, id := range ids {
		eventually(t, "the end of container "+id, func() bool { return !exists(t, e, id) })
	}
}
