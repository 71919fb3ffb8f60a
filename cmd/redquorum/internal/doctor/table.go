package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// width is how wide the advice is written.
const width = 96

// Write writes a report for people: a table of everything, what each finding that is not OK means and what to do about it,
// the worst first, and a last line that sums it up.
func (r Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESULT\tCHECK\tNODE\tFOUND")
	all := r.merged()
	order := map[string]int{}
	for i, f := range all {
		if _, known := order[f.Check]; !known {
			order[f.Check] = i
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(order[a.Check], order[b.Check]) })
	for _, f := range all {
		nodes := f.Nodes
		switch {
		case len(nodes) == 0:
			nodes = []string{"-"}
		case len(nodes) == len(r.Nodes) && len(nodes) > 1:
			nodes = []string{"all"}
		}
		for _, node := range nodes {
			fmt.Fprintf(table, "%v\t%s\t%s\t%s\n", f.Severity, f.Check, node, f.Found)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range r.advice() {
		fmt.Fprintf(&b, "\n%v: %s", f.Severity, f.Check)
		if len(f.Nodes) > 0 {
			fmt.Fprintf(&b, " of %s", strings.Join(f.Nodes, ", "))
		}
		b.WriteString("\n")
		paragraph(&b, "found", f.Found)
		paragraph(&b, "means", f.Means)
		paragraph(&b, "fix", f.Fix)
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", &b, r.Summary())
	return err
}

// paragraph writes a text behind its title, in lines of some width. A word is never cut.
func paragraph(b *strings.Builder, title, text string) {
	const indent = 9
	at := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case at == 0:
			fmt.Fprintf(b, "  %-*s", indent-2, title)
			at = indent
		case at+1+len(word) > width:
			fmt.Fprintf(b, "\n%*s", indent, "")
			at = indent
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	if at > 0 {
		b.WriteString("\n")
	}
}
