//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// Forwarded are the signals that a user may want to reach the command. A terminal tells the group in front of it that its
// window has changed, and a shell the group that it knows to go on: neither need be the command's.
var Forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGCONT,
}

// Harmless tells whether a signal does nothing to who does not care about it.
func Harmless(s os.Signal) bool { return s == syscall.SIGWINCH || s == syscall.SIGCONT }

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
