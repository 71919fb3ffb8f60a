package otelquorum_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// document is a row of README.md's table.
type document struct{ name, prometheus, kind string }

func documented(t *testing.T) (rows []document) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(redquorum[a-z._]+)`(?: \\*)? \\| `(redquorum[a-z_]+)` \\| ([a-z]+)")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, document{m[1], m[2], m[3]})
	}
	if len(rows) < 10 {
		t.Fatalf("README.md has %d metrics", len(rows))
	}
	return rows
}

// Whatever is measured is in both tables, and the other way round.
func TestTablesNameTheMetricsThatThereAre(t *testing.T) {
	w := watch(t)
	w.release(w.wait("stock"))
	w.lose("lost")
	if _, err := w.locks.TryAcquire(t.Context(), "stock"); err != nil && !errors.Is(err, quorum.ErrNotAcquired) {
		t.Fatal(err)
	}
	there := w.metrics().names()

	var readme []string
	for _, d := range documented(t) {
		readme = append(readme, d.name)
	}
	slices.Sort(readme)
	if !slices.Equal(readme, there) {
		t.Errorf("README.md has\n%s\nand there are\n%s", strings.Join(readme, "\n"), strings.Join(there, "\n"))
	}

	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var doc []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(redquorum\.[a-z._]+) `).FindAllStringSubmatch(string(text), -1) {
		doc = append(doc, m[1])
	}
	slices.Sort(doc)
	if !slices.Equal(doc, there) {
		t.Errorf("doc.go has\n%s\nand there are\n%s", strings.Join(doc, "\n"), strings.Join(there, "\n"))
	}
}
