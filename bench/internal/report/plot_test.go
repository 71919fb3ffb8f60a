package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/peers"
	"github.com/redquorum/redquorum/bench/internal/scenario"
)

// sample has everything that a report can have.
func sample() *Report {
	r := &Report{Started: time.Unix(0, 0).UTC(), Nodes: "5 <nodes>", Quick: true, Interrupted: true, Clients: Clients(peers.All())}
	latency := measure.NewHistogram()
	for i := range 5000 {
		latency.Record(time.Duration(i) * time.Microsecond)
	}
	for _, s := range scenario.Names() {
		for _, p := range peers.All() {
			m := measure.Result{Scenario: s, Peer: p.Name, Nodes: p.Nodes(5), Measured: "pair", Latency: latency.Latency(),
				Pairs: 5000, PerSecond: 1234.5, Errors: 1, FirstError: "<no>"}
			switch s {
			case "distinct":
				for _, m.Callers = range []int{1, 16} {
					r.Measurements = append(r.Measurements, m)
				}
				continue
			case "hung":
				m.Timeline = &measure.Timeline{SliceSeconds: 0.1, Slices: []measure.Slice{{Pairs: 3}, {}, {Pairs: 1, Errors: 2}},
					Events: []measure.Event{{Seconds: 0.1, What: "node 1 <hangs>"}}}
			case "killed":
				m = measure.Result{Scenario: s, Peer: p.Name, Nodes: 5, Skipped: "not <ours>"}
			case "held":
				m.Latency, m.Held = nil, &measure.Held{Leases: 10, CPUShare: 0.01}
			}
			r.Measurements = append(r.Measurements, m)
		}
	}
	return r
}

func TestPlotsAreWellFormedAndInside(t *testing.T) {
	r := sample()
	n := 0
	for _, s := range scenario.All() {
		for _, p := range r.charts(s) {
			n++
			svg := string(p.svg())
			for d := xml.NewDecoder(strings.NewReader(svg)); ; {
				_, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v\n%s", p.title, err, svg)
				}
			}
			for _, bad := range []string{"NaN", "Inf", "<hangs>"} {
				if strings.Contains(svg, bad) {
					t.Errorf("%s: %s in %s", p.title, bad, svg)
				}
			}
			for _, line := range p.series {
				for _, q := range line.points {
					if x, y := p.at(q); x < left || x > width-right || y < top || y > height-below {
						t.Errorf("%s, %s: %v is drawn at %v, %v", p.title, line.name, q, x, y)
					}
				}
			}
		}
	}
	if want := 2 + 1 + 5 + len(peers.All()); n != want { // by callers, its distribution, five more, and a timeline each
		t.Errorf("%d plots, want %d", n, want)
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	var b strings.Builder
	if err := HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "http:", "https:", "src=", "href=", "<no>", "<ours>", "<nodes>", "<hangs>"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "width=device-width", "quick run", "interrupted", "1 node", "not &lt;ours&gt;"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

func TestAxes(t *testing.T) {
	for _, high := range []float64{0, 0.3, 1, 7, 10, 999, 12345} {
		a := linearAxis("", high, thousands)
		if a.high < high || len(a.ticks) < 2 || len(a.ticks) > 8 || a.place(0) != 0 || a.place(a.high) != 1 {
			t.Errorf("to %v: up to %v, %d ticks", high, a.high, len(a.ticks))
		}
	}
	a := logAxis("", 20, 5000, shortMicros)
	if a.low != 10 || a.high != 10000 || len(a.ticks) != 4 || math.Abs(a.place(100)-1.0/3) > 1e-9 {
		t.Errorf("%+v", a.ticks)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 node", "1,235", "first error: <no>", "skipped: not <ours>", "longest gap", "100 ms", "1.00 %"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	for us, want := range map[float64]string{0.4: "0.4 µs", 250: "250 µs", 1500: "1.50 ms", 99999: "100 ms", 2e6: "2.00 s"} {
		if got := micros(us); got != want {
			t.Errorf("%v µs: %s, want %s", us, got, want)
		}
	}
}

func TestProgressIsLinesWhereThereIsNoTerminal(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	p.Step(0, 2, "one")
	p.Step(1, 2, "two")
	p.Done()
	if b.String() != "0/2 one\n1/2 two\n" {
		t.Errorf("%q", b.String())
	}
}
