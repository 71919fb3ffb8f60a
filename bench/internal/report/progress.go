package report

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Progress says what is being done: a bar on a terminal, a line each elsewhere.
type Progress struct {
	w   io.Writer
	bar bool
}

const barWidth = 24

// NewProgress writes to w.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	return &Progress{w: w, bar: ok && term.IsTerminal(int(f.Fd()))}
}

// Step says that so many of all steps are done, and what comes next.
func (p *Progress) Step(done, all int, what string) {
	if !p.bar {
		fmt.Fprintf(p.w, "%d/%d %s\n", done, all, what)
		return
	}
	full := barWidth * done / max(all, 1)
	fmt.Fprintf(p.w, "\r\x1b[K[%s%s] %d/%d %.48s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done, all, what)
}

// Done ends the bar.
func (p *Progress) Done() {
	if p.bar {
		fmt.Fprintln(p.w)
	}
}
