package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/redquorum/redquorum/bench/internal/measure"
	"github.com/redquorum/redquorum/bench/internal/scenario"
)

// charts are the plots of a scenario.
func (r *Report) charts(s scenario.Scenario) []plot {
	rows := slices.DeleteFunc(r.of(s), func(m measure.Result) bool { return m.Skipped != "" })
	var plots []plot
	plots = append(plots, r.byCallers(rows)...)
	plots = append(plots, r.timelines(rows)...)
	if len(plots) > 0 && rows[0].Timeline != nil {
		return plots // a distribution over a failure mixes before and after
	}
	if p, ok := r.distribution(rows); ok {
		plots = append(plots, p)
	}
	return plots
}

// class is a client's look, the same on the whole page.
func (r *Report) class(peer string) string {
	return fmt.Sprintf("s%d", slices.IndexFunc(r.Clients, func(c Client) bool { return c.Name == peer }))
}

// lines makes a series of each client.
func (r *Report) lines(rows []measure.Result, points func(measure.Result) []point) []series {
	var all []series
	for _, c := range r.Clients {
		s := series{name: c.Name, class: r.class(c.Name)}
		for _, m := range rows {
			if m.Peer == c.Name {
				s.points = append(s.points, points(m)...)
			}
		}
		if len(s.points) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// bounds are the smallest and the largest y.
func bounds(all []series) (low, high float64) {
	low = math.Inf(1)
	for _, s := range all {
		for _, p := range s.points {
			low, high = min(low, p.y), max(high, p.y)
		}
	}
	return low, high
}

// byCallers is throughput and latency against the number of callers, where it changes.
func (r *Report) byCallers(rows []measure.Result) []plot {
	x := axis{label: "callers", scale: math.Log2, low: math.Inf(1)}
	for _, m := range rows {
		n := float64(m.Callers)
		if n == 0 || m.Latency == nil {
			return nil
		}
		x.low, x.high = min(x.low, n), max(x.high, n)
		if !slices.ContainsFunc(x.ticks, func(t tick) bool { return t.at == n }) {
			x.ticks = append(x.ticks, tick{n, fmt.Sprint(m.Callers)})
		}
	}
	if len(x.ticks) < 2 {
		return nil
	}
	rate := r.lines(rows, func(m measure.Result) []point { return []point{{float64(m.Callers), m.PerSecond}} })
	_, most := bounds(rate)
	late := r.lines(rows, func(m measure.Result) []point { return []point{{float64(m.Callers), float64(m.Latency.P99)}} })
	low, high := bounds(late)
	return []plot{
		{title: "Throughput: pairs per second", x: x, y: linearAxis("pairs/s", most, thousands), series: rate},
		{title: "Latency: 99 % are no slower", x: x, y: logAxis("p99", low, high, shortMicros), series: late},
	}
}

// distribution is the latencies at the highest number of callers.
func (r *Report) distribution(rows []measure.Result) (plot, bool) {
	most := 0
	for _, m := range rows {
		most = max(most, m.Callers)
	}
	lines := r.lines(rows, func(m measure.Result) []point {
		if m.Callers != most || m.Latency == nil {
			return nil
		}
		var points []point
		for _, q := range m.Latency.Curve {
			// The slowest of n stands where one of n is.
			percent := min(q.Percent, 100-100/float64(m.Latency.Count+1))
			points = append(points, point{percent, float64(q.Micros)})
		}
		return points
	})
	if len(lines) == 0 {
		return plot{}, false
	}
	x := axis{label: "part of all", high: 99.99, scale: func(percent float64) float64 { return -math.Log10(1 - percent/100) }}
	x.ticks = []tick{{0, "0"}, {50, "50 %"}, {90, "90 %"}, {99, "99 %"}, {99.9, "99.9 %"}, {99.99, "99.99 %"}}
	low, high := bounds(lines)
	title := "Latency distribution"
	if most > 1 && len(rows) > len(lines) {
		title += fmt.Sprintf(" at %d callers", most)
	}
	return plot{title: title, x: x, y: logAxis("latency", low, high, shortMicros), series: lines}, true
}

// timelines are one plot for each client: their rates differ too much for one.
func (r *Report) timelines(rows []measure.Result) []plot {
	var plots []plot
	for _, m := range rows {
		if m.Timeline == nil {
			continue
		}
		s, failed := series{name: m.Peer, class: r.class(m.Peer)}, series{name: "errors", class: "errors"}
		for i, slice := range m.Timeline.Slices {
			at := (float64(i) + 0.5) * m.Timeline.SliceSeconds
			s.points = append(s.points, point{at, float64(slice.Pairs) / m.Timeline.SliceSeconds})
			failed.points = append(failed.points, point{at, float64(slice.Errors) / m.Timeline.SliceSeconds})
		}
		lines := []series{s}
		if m.Errors > 0 {
			lines = append(lines, failed)
		}
		_, high := bounds(lines)
		length := float64(len(s.points)) * m.Timeline.SliceSeconds
		x := linearAxis("seconds", length, func(v float64) string { return fmt.Sprintf("%.3g", v) })
		x.high = length
		x.ticks = slices.DeleteFunc(x.ticks, func(t tick) bool { return t.at > length })
		p := plot{title: m.Peer + ": pairs per second (" + nodeWords(m) + ")", x: x,
			y: linearAxis("pairs/s", high, thousands), series: lines, filled: true}
		for _, e := range m.Timeline.Events {
			p.marks = append(p.marks, mark{e.Seconds, e.What})
		}
		plots = append(plots, p)
	}
	return plots
}

func nodeWords(m measure.Result) string {
	if m.Nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", m.Nodes)
}

func thousands(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.3gk", v/1000)
	}
	return fmt.Sprintf("%.3g", v)
}

func shortMicros(us float64) string {
	switch {
	case us < 1e3:
		return fmt.Sprintf("%.3g µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	default:
		return fmt.Sprintf("%.3g s", us/1e6)
	}
}
