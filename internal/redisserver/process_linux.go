package redisserver

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// pause sends SIGSTOP and waits until the process stands still: kill(2) returns
// when the signal is queued, and the server may still answer a request by then.
// WNOWAIT leaves the exit, should there be one, to the goroutine that waits for it.
func (p *process) pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		err := unix.Waitid(unix.P_PID, p.pid(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("waitid", err)
		}
	}
}

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
