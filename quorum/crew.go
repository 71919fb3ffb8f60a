package quorum

import (
	"sync"

	"golang.org/x/sync/errgroup"
)

// A crew runs tasks at once, each on a goroutine of its own, and keeps the goroutines for the next ones. A request goes
// deep into the client's code: a fresh goroutine would grow its stack, and copy it, several times for each.
type crew struct {
	group errgroup.Group
	tasks sync.WaitGroup

	mu        sync.Mutex
	idle      []chan func()
	dismissed bool
}

// mostIdle is how many goroutines are kept, for five nodes and some dozens of callers.
const mostIdle = 256

// do runs a task, at once.
func (cr *crew) do(task func()) {
	cr.tasks.Add(1)
	cr.mu.Lock()
	if n := len(cr.idle); n > 0 {
		worker := cr.idle[n-1] // the one that worked last
		cr.idle = cr.idle[:n-1]
		cr.mu.Unlock()
		worker <- task
		return
	}
	cr.mu.Unlock()
	cr.group.Go(func() error {
		next := make(chan func(), 1)
		for ok := true; ok; task, ok = <-next {
			task()
			cr.tasks.Done()
			task = nil
			if !cr.rest(next) {
				return nil
			}
		}
		return nil
	})
}

// rest puts a worker with those who have nothing to do, unless there are enough.
func (cr *crew) rest(next chan func()) bool {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.dismissed || len(cr.idle) >= mostIdle {
		return false
	}
	cr.idle = append(cr.idle, next)
	return true
}

// wait waits for all tasks and sends the goroutines home.
func (cr *crew) wait() {
	cr.tasks.Wait()
	cr.mu.Lock()
	cr.dismissed = true
	for _, worker := range cr.idle {
		close(worker)
	}
	cr.idle = nil
	cr.mu.Unlock()
	_ = cr.group.Wait() // no task returns an error
}
