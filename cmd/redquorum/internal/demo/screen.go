package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	frameEvery = 100 * time.Millisecond // on a terminal
	lineEvery  = time.Second            // elsewhere
)

// screen is where the progress goes. On a terminal a few lines are drawn over and over, and what is said scrolls by
// above them; elsewhere there are plain lines only.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool
	drawn int // lines at present below what was said
}

func newScreen(out io.Writer) *screen {
	file, ok := out.(*os.File)
	return &screen{
		out:  out,
		live: ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb",
	}
}

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(fmt.Sprintf(format, args...)+"\n", nil)
}

// show shows how a sale goes until ctx ends.
func (s *screen) show(ctx context.Context, of *sale) {
	every := lineEvery
	if s.live {
		every = frameEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.draw(nil)
			return
		}
		if s.live {
			s.draw(of.picture(os.Getenv("NO_COLOR") == ""))
		} else {
			s.say("  %s", of.line())
		}
	}
}

// draw puts a picture in the place of the last one.
func (s *screen) draw(picture []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("", picture)
}

// print takes the picture away, prints text where it was, and the new picture below. It is one write, so that nothing
// flickers and an interrupt finds the terminal as it was. It is called with s.mu held.
func (s *screen) print(text string, picture []string) {
	const up, clear, noWrap, wrap = "\x1b[%dA", "\r\x1b[J", "\x1b[?7l", "\x1b[?7h"
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, up+clear, s.drawn)
	}
	b.WriteString(text)
	if len(picture) > 0 {
		b.WriteString(noWrap + strings.Join(picture, "\n") + "\n" + wrap)
	}
	s.drawn = len(picture)
	_, _ = io.WriteString(s.out, b.String()) // there is nowhere else to say so
}
