package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/quorum"
)

// unanswered is a quorum that is missing, for commands that only look: a node that answers them has granted nothing, and
// what it said is in what they show.
type unanswered struct {
	*quorum.QuorumError

	command string
}

// inTheirWords is what a command that only looks says of an error.
func inTheirWords(cmd *cobra.Command, err error) error {
	var missing *quorum.QuorumError
	if !errors.As(err, &missing) {
		return err
	}
	return &unanswered{missing, cmd.Name()}
}

// Error names the class, how many have answered, and why the others have not.
func (u *unanswered) Error() string {
	var silent []string
	answered := 0
	for _, v := range u.Votes {
		switch {
		case v.Err != nil:
			silent = append(silent, v.Err.Error()) // begins with the node's name
		case v.Outcome != quorum.Unknown:
			answered++
		}
	}
	all := u.QuorumError.Unwrap() // the classes, then those of the nodes
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: ", u.command, u.Name)
	for _, class := range all[:len(all)-len(silent)] {
		b.WriteString(strings.TrimPrefix(class.Error(), "redquorum: ") + ": ")
	}
	fmt.Fprintf(&b, "%d of %d answered, need %d", answered, len(u.Votes), u.Need)
	if len(silent) > 0 {
		b.WriteString(": " + strings.Join(silent, "; "))
	}
	return b.String()
}

// Unwrap returns the error as it was.
func (u *unanswered) Unwrap() error { return u.QuorumError }
