package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/scenario"
)

// A column is one of the table, in the terminal and on the page. It is left out where it is empty for all rows.
type column struct {
	title string
	value func(measure.Result) string
}

func columns() []column {
	latency := func(pick func(*measure.Latency) int64) func(measure.Result) string {
		return func(r measure.Result) string {
			if r.Latency == nil {
				return ""
			}
			return micros(float64(pick(r.Latency)))
		}
	}
	held := func(pick func(*measure.Held) string) func(measure.Result) string {
		return func(r measure.Result) string {
			if r.Held == nil {
				return ""
			}
			return pick(r.Held)
		}
	}
	return []column{
		{"client", func(r measure.Result) string { return r.Peer }},
		{"nodes", nodeCount},
		{"callers", func(r measure.Result) string { return count(int64(r.Callers * max(r.Processes, 1))) }},
		{"pairs/s", func(r measure.Result) string { return count(int64(r.PerSecond + 0.5)) }},
		{"hand-overs", func(r measure.Result) string {
			if r.Measured != "hand-over" {
				return ""
			}
			return count(r.Pairs)
		}},
		{"median", latency(func(l *measure.Latency) int64 { return l.Median })},
		{"p90", latency(func(l *measure.Latency) int64 { return l.P90 })},
		{"p99", latency(func(l *measure.Latency) int64 { return l.P99 })},
		{"max", latency(func(l *measure.Latency) int64 { return l.Max })},
		{"CPU/pair", func(r measure.Result) string {
			if r.CPUMicros == 0 {
				return ""
			}
			return micros(r.CPUMicros)
		}},
		{"allocs", func(r measure.Result) string { return count(int64(r.Allocs + 0.5)) }},
		{"longest gap", func(r measure.Result) string {
			if r.Timeline == nil {
				return ""
			}
			return micros(r.Timeline.LongestGap() * 1e6)
		}},
		{"leases", held(func(h *measure.Held) string { return count(int64(h.Leases)) })},
		{"TTL", held(func(h *measure.Held) string { return fmt.Sprintf("%g s", h.TTLSeconds) })},
		{"CPU of a core", held(func(h *measure.Held) string { return fmt.Sprintf("%.2f %%", 100*h.CPUShare) })},
		{"bytes/lease", held(func(h *measure.Held) string { return count(int64(h.BytesPerLease + 0.5)) })},
		{"lost", held(func(h *measure.Held) string { return fmt.Sprint(h.Lost) })},
		{"errors", func(r measure.Result) string { return count(r.Errors) }},
		{"two holders", func(r measure.Result) string { return count(r.Overlaps) }},
	}
}

func nodeCount(r measure.Result) string {
	if r.Nodes == 1 {
		return "1 node"
	}
	return fmt.Sprint(r.Nodes)
}

// used are the columns in which a row has something, and the rows' cells. Rows that were skipped have none.
func used(rows []measure.Result) (titles []string, cells [][]string) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r measure.Result) bool { return r.Skipped != "" })
	cells = make([][]string, len(rows))
	for _, c := range columns() {
		values := make([]string, len(rows))
		empty := true
		for i, r := range rows {
			values[i] = c.value(r)
			empty = empty && values[i] == ""
		}
		if empty {
			continue
		}
		titles = append(titles, c.title)
		for i, v := range values {
			cells[i] = append(cells[i], v)
		}
	}
	return titles, cells
}

// Table writes all measurements for a terminal.
func Table(w io.Writer, r *Report) error {
	fmt.Fprintf(w, "\n%s\n", r.about())
	for _, caveat := range r.caveats() {
		fmt.Fprintln(w, caveat)
	}
	for _, s := range scenario.All() {
		rows := r.of(s)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s (%s)\n", s.Title, s.Name)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		titles, cells := used(rows)
		for _, line := range append([][]string{titles}, cells...) {
			if len(line) > 0 {
				fmt.Fprintf(tw, "%s\t\n", strings.Join(line, "\t"))
			}
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		for _, note := range notes(rows) {
			fmt.Fprintln(w, "  "+note)
		}
	}
	return nil
}

// notes are what does not fit in a table.
func notes(rows []measure.Result) []string {
	var all []string
	for _, r := range rows {
		if r.Skipped != "" {
			all = append(all, fmt.Sprintf("%s: skipped: %s", r.Peer, r.Skipped))
		}
		if r.FirstError != "" {
			all = append(all, fmt.Sprintf("%s: first error: %s", r.Peer, r.FirstError))
		}
	}
	return all
}

// count is a number with its thousands apart; nothing for 0.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// micros is a time in the unit in which it has one to three digits before the point.
func micros(us float64) string {
	switch {
	case us < 10:
		return fmt.Sprintf("%.1f µs", us)
	case us < 1e3:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e4:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case us < 1e6:
		return fmt.Sprintf("%.0f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}
