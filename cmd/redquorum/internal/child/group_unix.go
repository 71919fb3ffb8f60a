//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// Forwarded are the signals that a user may want to reach the command.
var Forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// A group is a command with all that it has started.
type group struct{ id int }

func groupOf(cmd *exec.Cmd) group { return group{cmd.Process.Pid} }

// send fails only where nobody is left.
func (g group) send(s os.Signal) { _ = syscall.Kill(-g.id, s.(syscall.Signal)) }

// end tells the group to end. Who is stopped has to go on for that.
func (g group) end() {
	g.send(syscall.SIGTERM)
	g.send(syscall.SIGCONT)
}

func (g group) kill() { g.send(syscall.SIGKILL) }

// signalOf is the signal that ended a command, if one did.
func signalOf(state *os.ProcessState) (s int, ok bool) {
	ws, ok := state.Sys().(syscall.WaitStatus)
	return int(ws.Signal()), ok && ws.Signaled()
}
