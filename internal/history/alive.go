package history

import "time"

// LastAlive waits for the end of a lease, and returns the last time at which it was seen alive, or zero if it never was.
// When it ended, to the moment, is not known to anybody: on a busy machine the news may come long after, when another has
// the lock already.
func LastAlive(l Lease, now func() time.Duration) time.Duration {
	var alive time.Duration
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		at := now() // read before the look, so it was alive at that time, however long the look took
		if l.Err() != nil {
			return alive
		}
		alive = at
		select {
		case <-l.Done():
		case <-look.C:
		}
	}
}
