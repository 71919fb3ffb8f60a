package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// exact returns an error that matches ErrNotExact if the sale was not.
func (r result) exact() error {
	if err := r.Exact(); err != nil {
		return fmt.Errorf("%w: %s", ErrNotExact, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// headline is the sale in one line.
func (r result) headline() string {
	took := r.took.Round(100 * time.Millisecond)
	switch {
	case r.Oversold() > 0:
		return fmt.Sprintf("OVERSOLD by %d: %d orders for %d items in %v.", r.Oversold(), r.Sold, r.Initial, took)
	case r.Exact() != nil:
		return fmt.Sprintf("NOT EXACT: %d orders for %d items in %v.", r.Sold, r.Initial, took)
	}
	return fmt.Sprintf("EXACT: %d orders for %d items in %v.", r.Sold, r.Initial, took)
}

// verdict is the end of the demo: both sales side by side, and what to make of them.
func verdict(unlocked, locked result, left remains) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	row := func(name string, cells ...any) {
		fmt.Fprint(table, "  ", name)
		for _, cell := range cells {
			fmt.Fprintf(table, "\t%v", cell)
		}
		fmt.Fprintln(table)
	}
	count := func(name string, of func(result) int) { row(name, of(unlocked), of(locked)) }
	row("", "without a lock", "with a lock")
	row("items in stock", unlocked.Initial, locked.Initial)
	count("orders", func(r result) int { return r.Sold })
	count("oversold", result.Oversold)
	count("items sold again", func(r result) int { return r.Twice })
	count("two inside at once", func(r result) int { return r.Together })
	row("refused by fencing", "no tokens", locked.Refused)
	count("left without selling", func(r result) int { return r.Abandoned })
	if unlocked.dead+locked.dead > 0 {
		count("processes that died", func(r result) int { return r.dead })
	}
	row("time", unlocked.took.Round(100*time.Millisecond), locked.took.Round(100*time.Millisecond))
	row("acquisitions", "none", fmt.Sprintf("%d, %.0f/s", locked.Visits, float64(locked.Visits)/locked.took.Seconds()))
	row("nodes", "not used", locked.fate)
	row("left on the nodes", "nothing", left)
	table.Flush()

	b.WriteString("\n")
	if unlocked.Oversold() == 0 {
		b.WriteString("Without a lock nothing was oversold this time: luck, or a worker that was alone.\n")
	}
	if err := locked.exact(); err != nil {
		fmt.Fprintf(&b, "VERDICT: %v.", err)
		return b.String()
	}
	b.WriteString("VERDICT: with the lock every item was sold exactly once, by one worker at a time.")
	return b.String()
}
