package demo

import (
	"fmt"
	"strings"
	"time"
)

const barWidth = 40

// clock is how long the sale has been going on.
func (s *sale) clock() string { return fmt.Sprintf("%4.1fs", time.Since(s.began).Seconds()) }

// picture draws the sale for a terminal.
func (s *sale) picture(coloured bool) []string {
	paint := func(colour int, text string) string {
		if !coloured {
			return text
		}
		return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
	}
	const red, green, yellow = 31, 32, 33

	t := s.stock.Tally()
	full := barWidth * max(t.Left, 0) / t.Initial
	bar := paint(green, strings.Repeat("█", full)) + strings.Repeat("░", barWidth-full)
	orders := fmt.Sprintf("%d orders", t.Sold)
	if t.Sold > t.Initial-t.Left {
		orders = paint(red, fmt.Sprintf("%d orders for %d items", t.Sold, t.Initial-t.Left))
	}
	lines := []string{
		fmt.Sprintf("  %s  stock  %s %4d left", s.clock(), bar, t.Left),
		fmt.Sprintf("         sold   %s", orders),
		fmt.Sprintf("         inside %s", paint(yellow, s.inside())),
	}
	if s.watch != nil {
		var dots []string
		for i, n := range s.watch.view() {
			dot := paint(green, "●")
			if n.down {
				dot = paint(red, "○")
			}
			dots = append(dots, fmt.Sprintf("%s %d", dot, i+1))
		}
		lines = append(lines, "         nodes  "+strings.Join(dots, "   "))
	}
	return lines
}

// line tells the same in one line.
func (s *sale) line() string {
	t := s.stock.Tally()
	text := fmt.Sprintf("%s  %d orders, %d of %d left, inside: %s", s.clock(), t.Sold, t.Left, t.Initial, s.inside())
	if s.watch == nil {
		return text
	}
	var down []string
	nodes := s.watch.view()
	for i, n := range nodes {
		if n.down {
			down = append(down, fmt.Sprint(i+1))
		}
	}
	text += fmt.Sprintf(", nodes up: %d of %d", len(nodes)-len(down), len(nodes))
	if len(down) > 0 {
		text += " (down: " + strings.Join(down, ", ") + ")"
	}
	return text
}

// inside names who is inside; the first of them if there are many.
func (s *sale) inside() string {
	switch who := s.stock.Inside(); len(who) {
	case 0:
		return "nobody"
	case 1:
		return who[0].String()
	default:
		return fmt.Sprintf("%v and %d more", who[0], len(who)-1)
	}
}
