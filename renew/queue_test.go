package renew

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redquorum/redquorum/clock"
)

// Whatever is set and stopped in whatever order, the head is the next one, each watch knows its place, and none is
// there twice or got lost.
func TestQueueKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Far ahead: the goroutine only waits, and the queue is ours to look at.
		base := clock.System().Now().Add(1000 * time.Hour)
		d := NewWatchdog(clock.System())
		defer d.Close()
		var all []*Watch
		watched := map[*Watch]bool{}

		some := func(t *rapid.T) *Watch {
			if len(all) == 0 {
				t.Skip("none yet")
			}
			return rapid.SampledFrom(all).Draw(t, "watch")
		}
		times := func(t *rapid.T) (renewAt, end clock.Instant) {
			if rapid.Bool().Draw(t, "renewed") {
				renewAt = base.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "renewAt")))
			}
			return renewAt, base.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "end")))
		}
		t.Repeat(map[string]func(*rapid.T){
			"watch": func(t *rapid.T) {
				renewAt, end := times(t)
				w := d.Watch(nil, renewAt, end)
				all = append(all, w)
				watched[w] = true
			},
			"set": func(t *rapid.T) {
				w := some(t)
				w.Set(times(t))
				watched[w] = true
			},
			"stop": func(t *rapid.T) {
				w := some(t)
				w.Stop()
				delete(watched, w)
			},
			"": func(t *rapid.T) {
				d.mu.Lock()
				defer d.mu.Unlock()
				if len(d.queue) != len(watched) {
					t.Fatalf("%d in the queue, want %d", len(d.queue), len(watched))
				}
				for i, w := range d.queue {
					if w.index != i || !watched[w] {
						t.Fatalf("at %d is one that believes to be at %d, watched %v", i, w.index, watched[w])
					}
					if w.next().Before(d.queue[0].next()) {
						t.Fatalf("%v at %d comes before the head, %v", w.next(), i, d.queue[0].next())
					}
				}
				for _, w := range all {
					if !watched[w] && w.index != -1 {
						t.Fatalf("a stopped watch believes to be at %d", w.index)
					}
				}
			},
		})
	})
}
