package postgresserver

import (
	"os/exec"
	"runtime"
)

// process is one run of the server, from its start until it has been reaped.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed once the process was waited for
}

// start runs the command. Its goroutine keeps its thread until the process is gone: on Linux a child is told of the
// death of the thread that started it, and a Go thread can end before the program does.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in its log
		close(p.gone)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// exited says whether the process ended, by itself or by us.
func (p *process) exited() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// stop ends the server and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(interrupt) // fails only for a process that is gone
	<-p.gone
}
