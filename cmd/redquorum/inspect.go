package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

func inspectCommand() *cobra.Command {
	var i inspector
	cmd := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show who holds a lock, node by node",
		Long: `inspect asks every node who holds the lock NAME, for how long, and which fencing
token it granted last, and says what a quorum of them has. It changes nothing.

` + whereNodesAre + `

Exit status: 0 if a quorum of nodes answered, 2 if not, or if the lock could not
be asked for.`,
		Example: `  redquorum inspect backup
  redquorum inspect --watch backup                     # once a second
  redquorum inspect --watch=5s backup
  redquorum inspect --json backup | jq -r .verdict`,
		Args: nameToWatch, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return i.run(cmd, args[0]) },
	}
	i.flags(cmd)
	cmd.Flags().BoolVar(&i.json, "json", false, "print one JSON object, with durations in milliseconds; with --watch one a line")
	cmd.Flags().Var(span{&i.watch, 100 * time.Millisecond, time.Hour}, "watch", "look again after each such time, until interrupted")
	cmd.Flags().Lookup("watch").NoOptDefVal = "1s"
	return cmd
}

// nameToWatch wants the name of one lock, and tells whoever gave a time as another word where it belongs: a flag that does
// without a value does not take the next word for one.
func nameToWatch(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("watch") && len(args) == 2 {
		for _, word := range args {
			if _, err := time.ParseDuration(word); err == nil {
				return fmt.Errorf("2 names, one of which looks like a time: want --watch=%s; see %s --help", word, cmd.CommandPath())
			}
		}
	}
	return oneName(cmd, args)
}

// inspector looks at a lock.
type inspector struct {
	cluster
	json  bool
	watch time.Duration
}

func (i *inspector) run(cmd *cobra.Command, name string) (err error) {
	c, err := i.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for {
		state, err := c.Inspect(cmd.Context(), name)
		if len(state.Nodes) > 0 {
			if err := i.print(cmd.OutOrStdout(), state); err != nil {
				return err
			}
		}
		if i.watch == 0 {
			return inTheirWords(cmd, err)
		}
		select {
		case <-time.After(i.watch):
		case <-cmd.Context().Done():
			return nil
		}
		if !i.json {
			fmt.Fprintln(cmd.OutOrStdout())
		}
	}
}

func (i *inspector) print(w io.Writer, s quorum.State) error {
	if i.json {
		return json.NewEncoder(w).Encode(stateJSON(s))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tHOLDER\tHOLDS\tTTL\tTOKEN\tANSWERED IN")
	for _, n := range s.Nodes {
		switch {
		case n.Err != nil:
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t%v\n", n.Node, reason(n.Err))
		case !n.Held:
			fmt.Fprintf(table, "%s\t-\t-\t-\t%d\t%v\n", n.Node, n.Token, n.Elapsed.Round(10*time.Microsecond))
		case n.Holder == "":
			fmt.Fprintf(table, "%s\ta key that is no lock\t-\t%s\t-\t%v\n", n.Node, left(n.TTL), n.Elapsed.Round(10*time.Microsecond))
		default:
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%v\n", n.Node, n.Holder, n.HoldCount, left(n.TTL), n.Token, n.Elapsed.Round(10*time.Microsecond))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, verdict(s))
	return err
}

// reason is what a node's error says besides the node's name.
func reason(err error) error {
	var of *node.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// verdict says what a quorum of nodes has.
func verdict(s quorum.State) string {
	switch {
	case s.Verdict == quorum.VerdictFree:
		return fmt.Sprintf("%q is free.", s.Name)
	case s.Verdict == quorum.VerdictHeld && s.Holder != "":
		return fmt.Sprintf("%q is held by %s, for %s unless it is renewed.", s.Name, s.Holder, left(s.TTL))
	case s.Verdict == quorum.VerdictHeld:
		return fmt.Sprintf("%q is held, by no single holder on a quorum of nodes, for %s unless it is renewed.", s.Name, left(s.TTL))
	}
	return fmt.Sprintf("Nobody knows whether %q is held: no quorum of nodes agrees.", s.Name)
}

// left writes what is left of a TTL.
func left(ttl time.Duration) string {
	if ttl < 0 {
		return "ever"
	}
	return ttl.Round(time.Millisecond).String()
}

// stateJSON is a state as JSON has it: names in lower case, durations in milliseconds, -1 for ever.
func stateJSON(s quorum.State) any {
	type node struct {
		Node      string  `json:"node"`
		Held      bool    `json:"held"`
		Holder    string  `json:"holder,omitempty"`
		HoldCount int     `json:"hold_count,omitempty"`
		TTL       int64   `json:"ttl_ms"`
		Token     int64   `json:"token"`
		Elapsed   float64 `json:"elapsed_ms"`
		Error     string  `json:"error,omitempty"`
	}
	nodes := make([]node, len(s.Nodes))
	for i, n := range s.Nodes {
		nodes[i] = node{n.Node, n.Held, n.Holder, n.HoldCount, millis(n.TTL), n.Token, float64(n.Elapsed.Microseconds()) / 1000, ""}
		if n.Err != nil {
			nodes[i].Error = n.Err.Error()
		}
	}
	return struct {
		Name      string `json:"name"`
		Verdict   string `json:"verdict"`
		Holder    string `json:"holder,omitempty"`
		HoldCount int    `json:"hold_count,omitempty"`
		TTL       int64  `json:"ttl_ms"`
		Token     int64  `json:"token"`
		Nodes     []node `json:"nodes"`
	}{s.Name, s.Verdict.String(), s.Holder, s.HoldCount, millis(s.TTL), s.Token, nodes}
}

func millis(ttl time.Duration) int64 {
	if ttl < 0 {
		return -1
	}
	return ttl.Milliseconds()
}
