package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/redquorum/redquorum/bench/internal/scenario"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// HTML writes the page: one file that needs no other.
func HTML(w io.Writer, r *Report) error {
	type chart struct {
		Title string
		SVG   template.HTML
	}
	type section struct {
		Name, Title, About string
		Charts             []chart
		Titles             []string
		Rows               [][]string
		Notes              []string
	}
	type client struct {
		Client
		Class string
	}
	data := struct {
		*Report
		About    string
		Caveats  []string
		Clients  []client
		Sections []section
	}{Report: r, About: r.about(), Caveats: r.caveats()}
	for _, c := range r.Clients {
		data.Clients = append(data.Clients, client{c, r.class(c.Name)})
	}
	for _, s := range scenario.All() {
		rows := r.of(s)
		if len(rows) == 0 {
			continue
		}
		part := section{Name: s.Name, Title: s.Title, About: s.About, Notes: notes(rows)}
		part.Titles, part.Rows = used(rows)
		for _, p := range r.charts(s) {
			part.Charts = append(part.Charts, chart{p.title, p.svg()})
		}
		data.Sections = append(data.Sections, part)
	}
	return page.Execute(w, data)
}
