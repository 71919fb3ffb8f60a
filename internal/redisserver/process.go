package redisserver

import (
	"os"
	"os/exec"
	"runtime"
)

// process is one run of the binary, from its start until it has been reaped.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed once the process was waited for
}

// start runs the binary, its output going to log. The server dies with us, however we die: a test binary
// that panics or times out runs no cleanups.
//
// Linux promises that (PR_SET_PDEATHSIG) for the death of the *thread* that
// started the child, not of the process, and a Go thread can end before the
// program does. So each process has a goroutine that starts it on a thread of
// its own and keeps this thread until the child is gone.
func start(binary string, args []string, log *os.File) (*process, error) {
	p := &process{cmd: exec.Command(binary, args...), gone: make(chan struct{})}
	p.cmd.SysProcAttr = dieWithParent()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // "signal: killed" is how they all end
		close(p.gone)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// exited says whether the process ended by itself or by us.
func (p *process) exited() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill ends the process and waits for it. A paused process dies paused: waking it
// first would let it carry out, with its last breath, what it had not answered.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only for a process that is gone
	<-p.gone
}
