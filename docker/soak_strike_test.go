package docker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redquorum/redquorum/internal/history"
)

// A blow is one fault that some nodes have.
type blow struct {
	*round
	fault
	victims []*victim
	watches []*watch // of the victims
}

// strike lets one fault happen, from its begin to its end.
func (r *round) strike(f fault, g *rand.Rand) error {
	nodes, length := 1, soakTTL/3+upTo(g, soakTTL/2)
	if f.nodes > 0 {
		nodes, length = f.nodes, f.length+upTo(g, soakTTL/4)
	}
	order := g.Perm(soakNodes)
	if f.forgets {
		r.forgetful <- struct{}{}
	}
	victims, err := r.take(order, nodes)
	if err != nil {
		return err
	}
	b := &blow{round: r, fault: f, victims: victims, watches: make([]*watch, nodes)}
	b.look()
	from := r.now()
	if err := b.through(length); err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	r.mu.Lock()
	r.over = append(r.over, affliction{f.name, from, r.now()})
	r.mu.Unlock()
	// What is told late is told of this fault, and not of the next one.
	time.Sleep(2 * soakNodeTimeout)
	if f.forgets {
		// The clients know by now that it forgot. What it may have forgotten is over after this time.
		time.AfterFunc(soakTTL, func() { <-r.forgetful })
	}
	return r.leave(victims)
}

func (b *blow) String() string {
	where := make([]string, len(b.victims))
	for i, v := range b.victims {
		where[i] = fmt.Sprint("node ", v.i)
	}
	return strings.Join(where, ", ") + ": " + b.fault.name
}

func (b *blow) note(what string) {
	b.log.Record(history.Event{At: b.now(), Kind: history.Note, Text: fmt.Sprint(b, what)})
}

// through takes the victims through the fault, until it has been noticed.
func (b *blow) through(length time.Duration) error {
	if _, err := b.noticed(); err != nil { // the servers tell of it by what was before
		return err
	}
	b.note("")
	if err := b.each(b.begin); err != nil {
		return err
	}
	began := time.Now()
	last := began
	err := b.await(func() (bool, error) {
		if b.every > 0 && time.Since(last) >= b.every {
			last = time.Now()
			if err := b.each(b.begin); err != nil {
				return false, err
			}
		}
		if time.Since(began) < length || b.forgets {
			return time.Since(began) >= length, nil
		}
		return b.noticed()
	})
	if err != nil {
		return err
	}
	if b.end != nil {
		if err := b.each(b.end); err != nil {
			return err
		}
	}
	b.note(", no longer")
	if !b.forgets {
		return nil
	}
	b.look() // what was seen may be from before it forgot for the last time
	return b.await(b.noticed)
}

func (b *blow) each(step func(*victim) error) error {
	for _, v := range b.victims {
		if err := step(v); err != nil {
			return err
		}
	}
	return nil
}

// look begins to look at the votes of the victims, or does it anew.
func (b *blow) look() {
	for i, v := range b.victims {
		b.watches[i] = b.watch(v.i, b.fault)
	}
}

// noticed tells whether each of the victims that show the fault has done so by now.
func (b *blow) noticed() (bool, error) {
	for i, v := range b.victims {
		switch {
		case b.told != nil:
			if seen, err := b.told(v); err != nil || !seen {
				return false, err
			}
		case b.saw(b.watches[i]), b.first && !v.first:
		default:
			return false, nil
		}
	}
	return true, nil
}

// await waits until the condition holds. It must not fail the test: it is not on the test's goroutine.
func (b *blow) await(condition func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(often / 10) {
		if done, err := condition(); err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("nobody noticed")
		}
	}
}

// take takes n nodes that have no fault, the first ones in this order. There always are: the rows of the nodes have one
// each at most, that of the network three.
func (r *round) take(order []int, n int) ([]*victim, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var victims []*victim
	for _, i := range order {
		if r.taken[i] || len(victims) == n {
			continue
		}
		admin, err := r.admin(i)
		if err != nil {
			return nil, err
		}
		r.taken[i] = true
		victims = append(victims, &victim{c: r.cluster, i: i, admin: admin, first: len(victims) == 0})
	}
	if len(victims) < n {
		return nil, fmt.Errorf("%d nodes are without a fault, want %d", len(victims), n)
	}
	return victims, nil
}

func (r *round) leave(victims []*victim) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, v := range victims {
		r.unwatch(v.i)
		r.taken[v.i] = false
		errs = append(errs, v.admin.Close())
	}
	return errors.Join(errs...)
}
