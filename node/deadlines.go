package node

import (
	"slices"
	"time"
)

// One timer watches over the deadlines of all calls to a node.

// expect has the timer look when a call's time is up. It is called with mu held.
func (s *stream) expect(deadline time.Time) {
	if deadline.IsZero() || !s.due.IsZero() && !deadline.Before(s.due) {
		return
	}
	s.due = deadline
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(deadline)+s.slack, s.sweep)
	} else {
		s.timer.Reset(time.Until(deadline) + s.slack)
	}
}

// sweep is called by the timer.
func (s *stream) sweep() {
	s.mu.Lock()
	defer s.unlock()
	if !s.closed {
		s.due = time.Time{}
		s.reap(time.Now())
		s.pump()
	}
}

// reap ends the calls whose time is up. A connection on which nobody waits for anything any longer is given up with them:
// what was sent there must not arrive when nobody remembers it. It is called with mu held.
func (s *stream) reap(now time.Time) {
	s.waiting = slices.DeleteFunc(s.waiting, func(c *Call) bool { return s.over(c, now) })
	l := s.link
	if l == nil || len(l.flying) == 0 {
		return
	}
	late, alive := false, false
	for i, c := range l.flying {
		switch {
		case c == nil:
			late = true
		case s.over(c, now):
			l.flying[i], late = nil, true
		case !c.Deadline.IsZero(): // one that has all the time there is keeps no connection that hangs
			alive = true
		}
	}
	if late && !alive {
		s.drop(l, ErrTimeout)
	}
}

// over ends a call whose time is up, and has the timer look again for one that has time left.
func (s *stream) over(c *Call, now time.Time) bool {
	if c.Deadline.IsZero() || now.Before(c.Deadline.Add(s.slack)) {
		s.expect(c.Deadline)
		return false
	}
	s.finish(c, ErrTimeout)
	return true
}
