package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redquorum/redquorum/quorum"
)

func releaseCommand() *cobra.Command {
	var c cluster
	var force, yes bool
	cmd := &cobra.Command{
		Use:   "release --force NAME",
		Short: "Free a lock, whoever holds it",
		Long: `release --force frees the lock NAME whoever holds it, and keeps the holder from
taking it back. The holder learns of it at its next renewal, and believes in its
lease until then: only fencing tokens protect what it is working on. So this is
for locks whose holder is known to be dead, or stuck.

It shows who holds the lock and asks, unless --yes says so.

` + whereNodesAre + `

If fewer nodes answer than it takes to free the lock safely (N - quorum + 2: 3 of
3, 4 of 5), nothing is deleted: the holder cannot renew any more, and the lock is
free when its TTL is over.

Exit status: 0 if the lock is free now, 2 if not.`,
		Example: `  redquorum release --force backup
  redquorum release --force --yes backup    # in a script`,
		Args:              oneName,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !force {
				return errors.New("a lock is released by its holder; --force frees it whoever that is; see redquorum release --help")
			}
			if !yes && c.nodes == "-" {
				return errors.New("--nodes - takes the standard input, so nobody can be asked: want --yes")
			}
			coordinator, err := c.open(cmd)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, coordinator.Close()) }()
			if !yes {
				state, err := coordinator.Inspect(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if err := (&inspector{}).print(cmd.OutOrStdout(), state); err != nil {
					return err
				}
				if err := confirmed(cmd, args[0]); err != nil {
					return err
				}
			}
			held, err := coordinator.ForceRelease(cmd.Context(), args[0])
			var short *quorum.QuorumError
			switch {
			case errors.Is(err, quorum.ErrNotFreed) && errors.As(err, &short) && short.RetryAfter > 0:
				return fmt.Errorf("%w\nThe holder cannot renew any more: %q is free in %v at the latest. "+
					"To free it now, repeat this when more nodes are up", err, args[0], short.RetryAfter.Round(time.Millisecond))
			case err != nil:
				return err
			case held:
				fmt.Fprintf(cmd.OutOrStdout(), "%q was held and is free now.\n", args[0])
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "%q was free.\n", args[0])
			}
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "free it whoever holds it; without it nothing is done")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirmed asks whether a lock shall be freed.
func confirmed(cmd *cobra.Command, name string) error {
	if file, ok := cmd.InOrStdin().(*os.File); ok && !term.IsTerminal(int(file.Fd())) {
		return errors.New("there is no terminal to ask on: want --yes")
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Free %q? Type yes: ", name)
	answered := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is no
		answered <- answer
	}()
	var answer string
	select {
	case answer = <-answered:
	case <-cmd.Context().Done(): // interrupted; what still reads ends with the process
		fmt.Fprintln(cmd.OutOrStdout())
	}
	if strings.TrimSpace(answer) != "yes" {
		return fmt.Errorf("%q was left alone", name)
	}
	return nil
}
