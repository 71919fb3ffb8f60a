package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/redquorum/redquorum/quorum"
)

// A teller tells the user what the library warns of, each warning on a line of its own, for a person at a terminal or in the
// mail that a crontab sends: no time, no level, no quotes around what needs none. It writes to the standard error, since the
// standard output is what the command was called for.
//
// That a node fails is at first kept back. Whoever only looks shows the word of every node, and so does the error of a lock
// that was not had. Only who has the lock and goes on learns of it from nobody else: see relent.
type teller struct {
	*outlet
	attrs []slog.Attr
	group string
}

// outlet is what the tellers of one logger share.
type outlet struct {
	mu   sync.Mutex
	to   io.Writer
	kept map[string]bool // the nodes of whose failure nothing was told; nil once nothing is kept back
}

func newTeller(to io.Writer) *teller {
	return &teller{outlet: &outlet{to: to, kept: map[string]bool{}}}
}

// Enabled leaves out what needs nobody's attention.
func (*teller) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// WithAttrs and WithGroup are what slog wants of them.
func (t *teller) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *t
	more.attrs = slices.Concat(t.attrs, t.named(attrs))
	return &more
}

// WithGroup puts a name in front of those that follow.
func (t *teller) WithGroup(name string) slog.Handler {
	more := *t
	more.group += name + "."
	return &more
}

func (t *teller) named(attrs []slog.Attr) []slog.Attr {
	all := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		all[i] = slog.Attr{Key: t.group + a.Key, Value: a.Value}
	}
	return all
}

// Handle tells, or keeps back.
func (t *teller) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(t.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, t.named([]slog.Attr{a})...)
		return true
	})
	var node, why string
	var fails, few bool
	var rest []string
	for _, a := range attrs {
		value := a.Value.Resolve().String()
		switch a.Key {
		case "error", "why":
			if err, ok := a.Value.Any().(error); ok && errors.Is(err, quorum.ErrLost) {
				return nil // of what failed since the lease is lost; the loss is told by itself
			}
			fails = fails || a.Key == "error"
			why = value
			continue
		case "node":
			node = value
		case "need":
			few = true
		}
		if a.Value.Kind() == slog.KindString && strings.ContainsAny(value, " \"") {
			value = strconv.Quote(value)
		}
		rest = append(rest, a.Key+" "+value)
	}
	text := r.Message
	if len(rest) > 0 {
		text += " (" + strings.Join(rest, ", ") + ")"
	}
	if why != "" { // an error begins with the name of who failed, and that has been said
		text += ": " + strings.TrimPrefix(strings.TrimPrefix(why, "redquorum: "), node+": ")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.kept != nil && fails && node != "":
		t.kept[node] = true
		return nil
	case t.kept != nil && few:
		return nil // the lock is not had, or it is over when it is
	}
	return t.line(text)
}

// relent tells of the nodes that fail at this moment, and keeps nothing back from now on.
func (t *teller) relent(stats func() quorum.Stats) {
	t.mu.Lock()
	kept := t.kept
	t.kept = nil
	t.mu.Unlock()
	for _, n := range stats().Nodes { // asked for now: who fails from here on tells it by itself
		switch {
		case !kept[n.Node]:
		case n.Condition == quorum.NodeSilent:
			slog.New(t).Warn("a node does not answer", "node", n.Node, "error", n.Err)
		case n.Condition == quorum.NodeRefusing:
			slog.New(t).Warn("a node refuses requests", "node", n.Node, "error", n.Err)
		}
	}
}

// say tells something that is not from the log.
func (t *teller) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.line(text) // there is nobody else to tell
}

// line writes a line. What comes from a server cannot make it two, or move the cursor. It is called with o.mu held.
func (o *outlet) line(text string) error {
	_, err := fmt.Fprintln(o.to, "redquorum:", oneLine(text))
	return err
}

// oneLine is a text in which characters that are not for show are escaped.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
