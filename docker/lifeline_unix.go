//go:build unix

package docker

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// A lifeline removes the cluster's containers when this process is gone without
// having closed it: a test that times out runs no cleanups, and neither does a
// program that is killed. testcontainers has a container for that, whose image not
// every machine can pull; a shell at the other end of a pipe does as well.
type lifeline struct {
	cmd  *exec.Cmd
	end  io.WriteCloser
	once sync.Once
}

// A line on the pipe means that all is well; its end without one, that we are gone.
// The last words of a dying process may still create a container, so it is looked
// for more than once.
const watch = `read -r _ && exit
for _ in 1 2 3; do
	ids=$(docker ps -aq --filter "label=$1")
	[ -z "$ids" ] || docker rm -f -v $ids
	sleep 1
done`

// tie starts a lifeline for the containers with the label. Where there is no docker
// command it does nothing.
func tie(host, label string) (*lifeline, error) {
	if path, _ := exec.LookPath("docker"); path == "" {
		return nil, nil
	}
	cmd := exec.Command("sh", "-c", watch, "sh", labelKey+"="+label)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+host)
	cmd.Dir = "/"                                        // not a folder that a test removes
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for us
	end, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	return &lifeline{cmd: cmd, end: end}, nil
}

// cut ends the lifeline of a cluster that is gone. On nil it does nothing.
func (l *lifeline) cut() {
	if l == nil {
		return
	}
	l.once.Do(func() {
		_, _ = io.WriteString(l.end, "\n")
		_ = l.end.Close()
		_ = l.cmd.Wait()
	})
}
