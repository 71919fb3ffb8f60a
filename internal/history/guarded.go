package history

import (
	"sync"
	"time"
)

// Lease is a lease as its holder sees it.
type Lease interface {
	Name() string
	Token() int64
	Err() error
	Done() <-chan struct{}
}

// Guarded is a resource as a lock should protect it: of every name it remembers the highest token, and refuses writes
// with a lower one. [Resource] checks that this suffices. It is safe for concurrent use.
type Guarded struct {
	log *Recorder
	now func() time.Duration

	mu   sync.Mutex
	last map[string]int64 // the highest token, by name
}

// NewGuarded returns a resource to which nobody wrote yet. It records what is written at the times that now tells.
func NewGuarded(log *Recorder, now func() time.Duration) *Guarded {
	return &Guarded{log: log, now: now, last: make(map[string]int64)}
}

// Write records that a client writes under its lease, got by the operation op, and whether that was taken. The lease may
// be over: it is the token that decides.
func (g *Guarded) Write(client string, op int, l Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ok := l.Token() >= g.last[l.Name()]
	if ok {
		g.last[l.Name()] = l.Token()
	}
	g.log.Record(Event{At: g.now(), Kind: Wrote, Op: op, Client: client, Name: l.Name(), Token: l.Token(), OK: ok})
}
