package child

import (
	"os"
	"os/exec"
)

// Forwarded are the signals that a user may want to reach the command: a console tells everybody in it of Ctrl-C by itself,
// and this process has to outlast that.
var Forwarded = []os.Signal{os.Interrupt}

// Harmless tells whether a signal does nothing to who does not care about it.
func Harmless(os.Signal) bool { return false }

// A group is the command alone: what it has started is not known.
type group struct{ process *os.Process }

func groupOf(cmd *exec.Cmd) group { return group{cmd.Process} }

func (group) send(os.Signal) {}

// end cannot ask it to end.
func (g group) end() { g.kill() }

func (g group) kill() { _ = g.process.Kill() }

func signalOf(*os.ProcessState) (int, bool) { return 0, false }

func bind(*exec.Cmd) (unbind func()) { return func() {} }
