package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/quorum"
)

func lsCommand() *cobra.Command {
	l := lister{limit: 1000, timeout: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that are held",
		Long: `ls looks through the keys of every node for locks whose names match PATTERN, a glob
as Redis has it (* ? [abc], and \* for a * itself, quoted for the shell), and shows
who holds them, on how many nodes, and what a quorum of them says, as inspect does.
Without PATTERN it shows all. It changes nothing.

It goes by SCAN (of Redis 6 and later), some hundred keys at a time, so that
nobody else has to wait for it. The list is no snapshot: a lock that is taken or
released meanwhile may be in it or not. Where it is cut, it says so.

` + whereNodesAre + `

Exit status: 0 if a quorum of nodes answered, also if the list is cut; 2 if not,
or if the locks could not be asked for.`,
		Example: `  redquorum ls
  redquorum ls 'backup-*'
  redquorum ls --json | jq -r '.locks[] | select(.verdict == "held") | .name'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := "*"
			if len(args) > 0 {
				pattern = args[0]
			}
			if err := validatePattern(pattern); err != nil {
				return err
			}
			return l.run(cmd, pattern)
		},
	}
	l.flags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&l.json, "json", false, "print one JSON object, with durations in milliseconds")
	flags.Var(whole{&l.limit, 1, 100_000}, "limit", "show no more locks than this")
	flags.Var(span{&l.timeout, 100 * time.Millisecond, time.Hour}, "timeout", "look for names no longer than this")
	return cmd
}

// lister lists locks.
type lister struct {
	cluster
	json    bool
	limit   int
	timeout time.Duration
}

// list is what was found.
type list struct {
	quorum.Listing
	pattern string
	locks   []quorum.State
	late    bool // not all keys were looked at in time
}

func (l *lister) run(cmd *cobra.Command, pattern string) (err error) {
	c, err := l.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	found := list{pattern: pattern}
	ctx, cancel := context.WithTimeout(cmd.Context(), l.timeout)
	found.Listing, err = c.Names(ctx, pattern, l.limit)
	cancel()
	if found.late = errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, quorum.ErrNoQuorum) && cmd.Context().Err() == nil; found.late {
		err = nil // what was found in time is worth showing
	}
	if len(found.Nodes) == 0 {
		return inTheirWords(cmd, err)
	}
	states, failure := c.InspectAll(cmd.Context(), found.Names)
	for _, s := range states {
		if on(s) > 0 { // yet
			found.locks = append(found.locks, s)
		}
	}
	if err == nil { // else the two tell the same: nodes do not answer
		err = failure
	}
	return errors.Join(l.print(cmd.OutOrStdout(), found), inTheirWords(cmd, err))
}

// on is how many nodes have a lock.
func on(s quorum.State) (n int) {
	for _, node := range s.Nodes {
		if node.Held {
			n++
		}
	}
	return n
}

func (l *lister) print(w io.Writer, found list) error {
	if l.json {
		return json.NewEncoder(w).Encode(found.json())
	}
	if len(found.locks) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tHOLDER\tHOLDS\tTTL\tTOKEN\tON\tVERDICT")
		for _, s := range found.locks {
			fmt.Fprintln(table, row(s))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, n := range found.Nodes {
		if n.Err != nil {
			fmt.Fprintln(w, n.Err) // begins with the node's name
		}
	}
	_, err := fmt.Fprintln(w, found.summary(l))
	return err
}

// row is one lock in the table. Where no quorum agrees on a holder, it is what the nodes say that have one.
func row(s quorum.State) string {
	holder, holds, ttl := s.Holder, s.HoldCount, s.TTL
	for _, n := range s.Nodes {
		if s.Holder != "" || !n.Held {
			continue
		}
		switch {
		case n.Holder == "":
			holder, holds = "a key that is no lock", 0
		case holder == "":
			holder, holds = n.Holder, n.HoldCount
		case holder != n.Holder:
			holder, holds = "several", 0
		}
		if s.Verdict != quorum.VerdictHeld && (n.TTL < 0 || ttl >= 0 && n.TTL > ttl) {
			ttl = n.TTL
		}
	}
	count := "-"
	if holds > 0 {
		count = strconv.Itoa(holds)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d of %d\t%s", printable(s.Name), holder, count, left(ttl), s.Token, on(s), len(s.Nodes), inWords(s))
}

// inWords says what a quorum of nodes has, in the words of inspect, as far as a table has room for them.
func inWords(s quorum.State) string {
	switch {
	case s.Verdict == quorum.VerdictHeld && s.Holder != "":
		return "held"
	case s.Verdict == quorum.VerdictHeld:
		return "held, by no single holder on a quorum of nodes"
	case s.Verdict == quorum.VerdictFree:
		return "free on a quorum of nodes"
	}
	return "unknown: no quorum of nodes agrees"
}

// printable is a name as it can be shown in a table: names are bytes, and may be what moves a terminal's cursor.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || strings.Contains(name, " ") {
		return quoted
	}
	return name
}

// summary is the last line.
func (f list) summary(l *lister) string {
	silent := 0
	for _, n := range f.Nodes {
		if n.Err != nil {
			silent++
		}
	}
	locks := "locks match"
	if len(f.locks) == 1 {
		locks = "lock matches"
	}
	text := fmt.Sprintf("%d %s %q on %d of %d nodes", len(f.locks), locks, f.pattern, len(f.Nodes)-silent, len(f.Nodes))
	switch {
	case f.Cut:
		return text + fmt.Sprintf("; there are more than %d (--limit).", l.limit)
	case f.late:
		return text + fmt.Sprintf("; there may be more, not all keys were looked at within %v (--timeout).", l.timeout)
	}
	return text + "."
}

// json is a list as JSON has it: the locks as those of inspect.
func (f list) json() any {
	type node struct {
		Node    string  `json:"node"`
		Whole   bool    `json:"whole"`
		Elapsed float64 `json:"elapsed_ms"`
		Error   string  `json:"error,omitempty"`
	}
	nodes := make([]node, len(f.Nodes))
	for i, n := range f.Nodes {
		nodes[i] = node{n.Node, n.Whole, float64(n.Elapsed.Microseconds()) / 1000, ""}
		if n.Err != nil {
			nodes[i].Error = n.Err.Error()
		}
	}
	locks := make([]any, len(f.locks))
	for i, s := range f.locks {
		locks[i] = stateJSON(s)
	}
	return struct {
		Pattern string `json:"pattern"`
		Cut     bool   `json:"cut"`
		Locks   []any  `json:"locks"`
		Nodes   []node `json:"nodes"`
	}{f.pattern, f.Cut || f.late, locks, nodes}
}
