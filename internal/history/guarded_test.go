package history

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// held is a lease of a test.
type held struct {
	name  string
	token int64
	over  atomic.Bool
	done  chan struct{}
}

func lease(name string, token int64) *held {
	return &held{name: name, token: token, done: make(chan struct{})}
}

func (l *held) Name() string          { return l.name }
func (l *held) Token() int64          { return l.token }
func (l *held) Done() <-chan struct{} { return l.done }

func (l *held) Err() error {
	if l.over.Load() {
		return errors.New("over")
	}
	return nil
}

func TestGuardedRefusesLowerTokens(t *testing.T) {
	var log Recorder
	g := NewGuarded(&log, func() time.Duration { return 7 * ms })
	g.Write("a", 1, lease("x", 2))
	g.Write("b", 2, lease("x", 1)) // late
	g.Write("c", 3, lease("y", 1)) // another name has tokens of its own
	g.Write("a", 1, lease("x", 2)) // again
	want := History{
		{At: 7 * ms, Kind: Wrote, Op: 1, Client: "a", Name: "x", Token: 2, OK: true},
		{At: 7 * ms, Kind: Wrote, Op: 2, Client: "b", Name: "x", Token: 1},
		{At: 7 * ms, Kind: Wrote, Op: 3, Client: "c", Name: "y", Token: 1, OK: true},
		{At: 7 * ms, Kind: Wrote, Op: 1, Client: "a", Name: "x", Token: 2, OK: true},
	}
	if got := log.History(); got.String() != want.String() {
		t.Errorf("recorded\n%vnot\n%v", got, want)
	}
}

// The news of an end may be late: what counts is when the lease was seen alive.
func TestLastAliveIsBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := lease("x", 1)
		time.AfterFunc(10*ms+ms/2, func() { l.over.Store(true) })
		time.AfterFunc(time.Second, func() { close(l.done) })
		if got := LastAlive(l, func() time.Duration { return time.Since(start) }); got != 10*ms {
			t.Errorf("seen alive at %v, and not at %v", got, 10*ms)
		}
	})
}

func TestLastAliveIsNeverOfWhatIsOver(t *testing.T) {
	l := lease("x", 1)
	l.over.Store(true)
	if got := LastAlive(l, func() time.Duration { return time.Hour }); got != 0 {
		t.Errorf("seen alive at %v", got)
	}
}
