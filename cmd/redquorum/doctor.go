package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquorum/redquorum/cmd/redquorum/internal/doctor"
	"github.com/redquorum/redquorum/quorum"
)

func doctorCommand() *cobra.Command {
	var e examiner
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the nodes: what is wrong, what it means, how to mend it",
		Long: `doctor examines every node, and the nodes together: whether they answer, and how
fast; version, role, persistence, eviction; whether two addresses are one server;
what the clocks show; whether everything that a lock needs is permitted and works,
tried on a scratch name; what the restart guard has on record; whether number and
times make sense. Of all that is not as it should be it says what it means for
locks, and what to do.

It changes nothing that clients rely on, and does to a node what any client does
that connects. Run it with the credentials, the prefix and the times of your
clients.

--acl prints what a user of the nodes has to be permitted at least, on one line, as
ACL SETUSER takes it, and talks to no node. ls needs +scan, +hlen and +hkeys
besides, and doctor sees more with +config|get.

` + whereNodesAre + `

Exit status: 0 if there are no problems; 1 if there are, with --strict also if there
are warnings, of what makes locks unsafe should something else happen, such as a full
memory; 2 if no quorum of nodes would vote for a lock now, or if the nodes could not
be examined.`,
		Example: `  redquorum doctor
  redquorum doctor --strict --ttl 10s                  # before a roll-out
  redquorum doctor --acl shop:                         # for names that begin with shop:
  redquorum doctor --json | jq '.findings[] | select(.severity == "problem")'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
	}
	e.flags(cmd)
	e.ttl = quorum.DefaultTTL
	flags := cmd.Flags()
	flags.Var(span{&e.ttl, time.Millisecond, 24 * time.Hour}, "ttl", "the TTL of your locks")
	flags.BoolVar(&e.strict, "strict", false, "fail on warnings, too")
	flags.StringVar(&e.acl, "acl", "", "print the smallest rules of an ACL for clients with this `prefix`, and examine nothing")
	flags.BoolVar(&e.json, "json", false, "print one JSON object, with durations in milliseconds")
	return cmd
}

// examiner examines the nodes.
type examiner struct {
	cluster
	json, strict bool
	acl          string
}

func (e *examiner) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("acl") {
		rules, err := quorum.ACL(e.acl)
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(rules, " "))
		}
		return err
	}
	urls, err := e.urls(cmd)
	if err != nil {
		return err
	}
	report, err := doctor.Examine(cmd.Context(), doctor.Config{URLs: urls, TTL: e.ttl, NodeTimeout: e.timeout, Prefix: e.prefix})
	if err != nil {
		return err
	}
	if e.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		err = report.Write(cmd.OutOrStdout())
	}
	switch worst := report.Worst(); {
	case err != nil:
		return err
	case report.Voting < report.Quorum:
		return fmt.Errorf("%w: %d of %d would vote, need %d", quorum.ErrNoQuorum, report.Voting, len(report.Nodes), report.Quorum)
	case worst == doctor.Problem, worst == doctor.Warning && e.strict:
		return &exit{status: unhealthy} // the report has said why
	}
	return nil
}
