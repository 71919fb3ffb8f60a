// Package child runs a command for as long as something lasts, and ends all of it when that is over.
package child

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// A Command is what to run.
type Command struct {
	Args []string
	// Env is added to the environment of this process.
	Env      []string
	In       io.Reader
	Out, Err io.Writer
	// Grace is how long the command has to end after it was told to; then it is killed.
	Grace time.Duration
}

// Exit statuses as a shell has them: of a command that could not be run or was not found, and of one that a signal ended, to
// which the signal's number is added.
const (
	NotRunnable = 126
	NotFound    = 127
	BySignal    = 128
)

// Run starts the command, in a process group of its own, and waits for its end. Signals are passed on to the group. When over
// closes, the whole group is told to end (SIGTERM), and when the grace is over, or the command has ended and left others
// behind, it is killed: nothing of it goes on. (Windows knows no such groups; there the command is killed.)
//
// It returns the command's exit status. An error is a command that could not be started.
func (c Command) Run(signals <-chan os.Signal, over <-chan struct{}) (status int, err error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:gosec,noctx // what to run is the user's to say, and it ends as above
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, c.Out, c.Err
	cmd.WaitDelay = time.Second // for who has left the group, and its output open
	unbind := bind(cmd)
	defer unbind()
	if err := cmd.Start(); err != nil {
		status = NotRunnable
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			status = NotFound
		}
		return status, fmt.Errorf("the command cannot be started: %w", err)
	}
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		c.attend(groupOf(cmd), signals, over, ended)
	}()
	err = cmd.Wait()
	close(ended)
	<-left
	return exitStatus(cmd.ProcessState, err), nil
}

// attend passes signals on to the group, and ends it when it is over.
func (c Command) attend(g group, signals <-chan os.Signal, over, ended <-chan struct{}) {
	var grace <-chan time.Time
	for {
		select {
		case s := <-signals:
			g.send(s)
		case <-over:
			over = nil
			g.end()
			timer := time.NewTimer(c.Grace)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			g.kill()
			<-ended
			return
		case <-ended:
			if over == nil {
				g.kill()
			}
			return
		}
	}
}

// exitStatus is a command's status as a shell tells it.
func exitStatus(state *os.ProcessState, err error) int {
	if state == nil {
		return NotRunnable
	}
	if s, ok := signalOf(state); ok {
		return BySignal + s
	}
	if code := state.ExitCode(); code != 0 || err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return code
	}
	return NotRunnable // its output could not be passed on
}
