//go:build unix && !linux

package child

import (
	"os/exec"
	"syscall"
)

// bind puts a command that is about to start into a group of its own. Only Linux can tie it to this process.
func bind(cmd *exec.Cmd) (unbind func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {}
}
