package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/quorum"
)

// What many locks have at a node is asked together; each has the state that Inspect tells of it.
func TestInspectAllTellsOfEachWhatInspectDoes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.client(quorum.Config{})
		var names []string
		for i := range 200 {
			name := fmt.Sprint("lock ", i)
			cl.put(name, [][]int{{0, 1, 2}, {1}, {0, 2}, nil}[i%4]...)
			names = append(names, name)
		}
		states, err := c.InspectAll(t.Context(), names)
		if err != nil || len(states) != len(names) {
			t.Fatalf("%d states, %v", len(states), err)
		}
		for i, s := range states {
			want, err := c.Inspect(t.Context(), names[i])
			if err != nil {
				t.Fatal(err)
			}
			for n := range want.Nodes {
				want.Nodes[n].Elapsed, s.Nodes[n].Elapsed = 0, 0
			}
			if !reflect.DeepEqual(s, want) {
				t.Errorf("got %+v, want %+v", s, want)
			}
		}
		if states, err := c.InspectAll(t.Context(), nil); states != nil || err != nil {
			t.Errorf("of none: %v, %v", states, err)
		}
	})
}

// A node that hangs costs one node timeout, and not one for each lock.
func TestInspectAllWaitsForASilentNodeOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{})
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprint("lock ", i))
			cl.put(names[i], 0, 1, 2)
		}
		for held, want := range []error{nil, quorum.ErrNoQuorum} {
			cl.nodes[held].Hold()
			begun := time.Now()
			states, err := c.InspectAll(t.Context(), names)
			if !errors.Is(err, want) || len(states) != len(names) {
				t.Fatalf("%d states, %v; want %v", len(states), err, want)
			}
			if took := time.Since(begun); took != 500*time.Millisecond {
				t.Errorf("it took %v, and a node timeout is 500ms", took)
			}
			for _, s := range states {
				if !errors.Is(s.Nodes[held].Err, node.ErrTimeout) || !s.Nodes[2].Held {
					t.Fatalf("%+v", s)
				}
			}
		}
		for _, n := range cl.nodes {
			n.Resume()
		}
	})
}

func TestInspectAllEndsWithItsContextAndWithClose(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, cl *cluster) {
		c := cl.warmClient(quorum.Config{NodeTimeout: 4 * time.Second})
		for _, n := range cl.nodes {
			n.Delay(100 * time.Millisecond)
		}
		names := make([]string, 1000) // some twenty round trips
		for i := range names {
			names[i] = fmt.Sprint("lock ", i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		states, err := c.InspectAll(ctx, names)
		wantIs(t, err, context.DeadlineExceeded)
		if took := time.Since(begun); states != nil || took > 1500*time.Millisecond {
			t.Errorf("%d states after %v", len(states), took)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.InspectAll(t.Context(), names)
			ended <- err
		}()
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantIs(t, <-ended, quorum.ErrClosed)
		if _, err := c.InspectAll(t.Context(), names); !errors.Is(err, quorum.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
