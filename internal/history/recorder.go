package history

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind says what an event is.
type Kind int

// The kinds of events.
const (
	Note     Kind = iota // something to read: a fault
	Asked                // a client asked for a lock
	Granted              // and got it
	Refused              // and was told that others hold it
	Unknown              // and does not know: no quorum, or it gave up
	Believed             // a holder looked at its lease, and it was alive
	Ended                // a holder stopped believing in its lease
	Call                 // a holder began to renew or release
	Return               // and was told that it worked, or not
	Wrote                // a holder wrote to the resource, which took it or not
	Voted                // a node granted a lock
	Healed               // nothing goes wrong from now on
	Revoked              // so many nodes know that a holder was force-released that it cannot renew any more
	Freed                // a force-release has deleted a holder's key on a node
)

var kinds = [...]string{
	"", "asks", "granted", "refused", "unknown", "believes", "ended", "calls", "returned", "wrote", "voted", "healed", "revoked", "freed",
}

// Event is one thing that happened. Which fields are set depends on the kind.
type Event struct {
	At     time.Duration
	Kind   Kind
	Op     int // which Asked it belongs to
	Client string
	Name   string
	Node   string
	Holder string
	Token  int64
	OK     bool
	Text   string // of a note; what is called
	Detail string // for whoever reads it
}

func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%14v  ", e.At)
	if e.Node != "" {
		fmt.Fprintf(&b, "node %s ", e.Node)
	}
	if e.Op > 0 {
		fmt.Fprintf(&b, "#%d ", e.Op)
	}
	if e.Client != "" {
		fmt.Fprintf(&b, "client %s ", e.Client)
	}
	b.WriteString(kinds[e.Kind])
	for _, part := range []string{e.Text, e.Name, e.Holder, e.Detail} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	if e.Token != 0 {
		fmt.Fprintf(&b, " token %d", e.Token)
	}
	if e.Kind == Return || e.Kind == Wrote {
		fmt.Fprintf(&b, " %v", e.OK)
	}
	return b.String()
}

// History is the events of a run in the order in which they were recorded.
type History []Event

func (h History) String() string {
	var b strings.Builder
	for _, e := range h {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

// Hash is a number of the whole history: two runs that are alike have the same. Details do not count: which of several
// nodes' answers of one moment an error mentions is a matter of chance. Nor does the order within a moment.
func (h History) Hash() uint64 {
	sum := fnv.New64a()
	for _, line := range h.Outline() {
		_, _ = fmt.Fprintln(sum, line)
	}
	return sum.Sum64()
}

// Outline is the history without details, with the events of each moment in the order of the alphabet: they happened at
// once.
func (h History) Outline() []string {
	lines := make([]string, len(h))
	for i, e := range h {
		e.Detail = ""
		lines[i] = e.String()
	}
	for from := 0; from < len(h); {
		to := from
		for to < len(h) && h[to].At == h[from].At {
			to++
		}
		slices.Sort(lines[from:to])
		from = to
	}
	return lines
}

// Recorder takes in events. The zero value is ready; it is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	events History
	ops    int
}

// Record takes in an event.
func (r *Recorder) Record(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Ask records that a client asks for a lock, and returns the number of the operation, to which all later events of it
// belong. patient tells that it waits for as long as it takes.
func (r *Recorder) Ask(at time.Duration, client, name, how string, patient bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops++
	r.events = append(r.events, Event{At: at, Kind: Asked, Op: r.ops, Client: client, Name: name, Text: how, OK: patient})
	return r.ops
}

// History returns what was recorded so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(History(nil), r.events...)
}
