package child

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// bind puts a command that is about to start into a group of its own, in the foreground if this process has a terminal, and
// ties it to this process: who kills that kills the command, which would else go on without the lock. What is returned takes
// the terminal back.
func bind(cmd *exec.Cmd) (unbind func()) {
	// The system ties it to the thread that starts it.
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	file, ok := cmd.Stdin.(*os.File)
	if !ok {
		return runtime.UnlockOSThread
	}
	terminal := int(file.Fd())
	if group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return runtime.UnlockOSThread // no terminal, or not ours to give
	}
	cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, terminal
	return func() {
		signal.Ignore(syscall.SIGTTOU) // this process is in the background now
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, unix.Getpgrp())
		signal.Reset(syscall.SIGTTOU)
		runtime.UnlockOSThread()
	}
}
