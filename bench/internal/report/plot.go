package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// A plot is lines over two axes. It becomes an SVG of our own: the page needs no script, and no other file.
type plot struct {
	title  string
	x, y   axis
	series []series
	marks  []mark
	filled bool // the area under the lines
}

// An axis maps a value to 0..1 by its scale, from low to high.
type axis struct {
	label     string
	low, high float64
	scale     func(float64) float64
	ticks     []tick
}

type tick struct {
	at    float64
	label string
}

// A series is one line. Class picks its colour and dashes from the style sheet.
type series struct {
	name, class string
	points      []point
}

type point struct{ x, y float64 }

// A mark is a moment on the x axis.
type mark struct {
	at    float64
	label string
}

// The drawing's size, small enough that its text is readable on a phone.
const (
	width, height           = 420.0, 290.0
	left, right, top, below = 54.0, 26.0, 12.0, 42.0
)

func linear(v float64) float64 { return v }

func (a axis) place(v float64) float64 {
	low, high := a.scale(a.low), a.scale(a.high)
	if high <= low {
		return 0
	}
	return min(1, max(0, (a.scale(v)-low)/(high-low)))
}

func (p plot) at(q point) (x, y float64) {
	return left + p.x.place(q.x)*(width-left-right), height - below - p.y.place(q.y)*(height-top-below)
}

// svg draws.
func (p plot) svg() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(p.title))
	for _, t := range p.y.ticks {
		_, y := p.at(point{p.x.low, t.at})
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fH%.1f"/>`, left, y, width-right)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, left-6, y+4, html.EscapeString(t.label))
	}
	for _, t := range p.x.ticks {
		x, _ := p.at(point{t.at, p.y.low})
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %.1fV%.1f"/>`, x, top, height-below)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, height-below+16, html.EscapeString(t.label))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
		left+(width-left-right)/2, height-8, html.EscapeString(p.x.label))
	for i, m := range p.marks {
		x, _ := p.at(point{m.at, p.y.low})
		anchor, dx := "start", 4.0
		if x > width/2 {
			anchor, dx = "end", -4
		}
		fmt.Fprintf(&b, `<path class="mark" d="M%.1f %.1fV%.1f"/>`, x, top, height-below)
		fmt.Fprintf(&b, `<text class="mark" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`,
			x+dx, top+10+14*float64(i%3), anchor, html.EscapeString(m.label))
	}
	for _, s := range p.series {
		b.WriteString(p.line(s))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // all text in it was escaped
}

func (p plot) line(s series) string {
	if len(s.points) == 0 {
		return ""
	}
	var d strings.Builder
	for i, q := range s.points {
		x, y := p.at(q)
		command := byte('L')
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&d, "%c%.1f %.1f", command, x, y)
	}
	var b strings.Builder
	if p.filled {
		first, base := p.at(point{s.points[0].x, p.y.low})
		last, _ := p.at(s.points[len(s.points)-1])
		fmt.Fprintf(&b, `<path class="area %s" d="%sL%.1f %.1fL%.1f %.1fZ"/>`, s.class, d.String(), last, base, first, base)
	}
	fmt.Fprintf(&b, `<path class="line %s" d="%s"><title>%s</title></path>`, s.class, d.String(), html.EscapeString(s.name))
	if !p.filled {
		for _, q := range s.points {
			x, y := p.at(q)
			fmt.Fprintf(&b, `<circle class="%s" cx="%.1f" cy="%.1f" r="2.6"/>`, s.class, x, y)
		}
	}
	return b.String()
}

// linearAxis reaches from 0 to a round number that is no less than high.
func linearAxis(label string, high float64, format func(float64) string) axis {
	if high <= 0 {
		high = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if high/(step*part) <= 5 {
			step *= part
			break
		}
	}
	a := axis{label: label, scale: linear, high: math.Ceil(high/step-1e-9) * step}
	for v := 0.0; v <= a.high+step/2; v += step {
		a.ticks = append(a.ticks, tick{v, format(v)})
	}
	return a
}

// logAxis reaches from one power of ten to another, around what there is. Both are positive.
func logAxis(label string, low, high float64, format func(float64) string) axis {
	a := axis{label: label, scale: math.Log10}
	a.low = math.Pow(10, math.Floor(math.Log10(low)))
	a.high = math.Pow(10, math.Ceil(math.Log10(high)))
	if a.high <= a.low {
		a.high = a.low * 10
	}
	for v := a.low; v <= a.high*1.01; v *= 10 {
		a.ticks = append(a.ticks, tick{v, format(v)})
	}
	return a
}
