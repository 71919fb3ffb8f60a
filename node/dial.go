package node

import (
	"context"
	"errors"
	"slices"
	"time"
)

// dial makes a connection for those that wait. It is called with mu held.
func (s *stream) dial() {
	if s.dialing != nil {
		return
	}
	// It may take as long as the call that has most time. One that has all the time there is tries again.
	var latest time.Time
	for _, c := range s.waiting {
		c.hopes = true
		deadline := c.Deadline
		if deadline.IsZero() {
			deadline = time.Now().Add(longDial)
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest)
	s.dialing = cancel
	s.group.Go(func() {
		defer cancel()
		l, err := s.node.connect(ctx)
		s.mu.Lock()
		defer s.unlock()
		s.dialing = nil
		s.reap(time.Now())
		switch {
		case s.closed:
			if l != nil {
				l.close()
			}
		case err == nil:
			s.link = l
			s.group.Go(func() { s.read(l) })
		case time.Now().Before(latest):
			// Who waited for it hears why; who came since, or has time left where it was for lack of time, tries again.
			s.waiting = slices.DeleteFunc(s.waiting, func(c *Call) bool {
				if c.hopes {
					s.finish(c, err)
				}
				return c.hopes
			})
		}
		s.pump()
	})
}

// Redial gives the connection up over which the scripts go, and what is under way on it: the next request makes a new one. It is for
// an address that may lead to another server by now, which a connection that lives does not tell.
func (n *Node) Redial() {
	s := &n.stream
	s.mu.Lock()
	defer s.unlock()
	if s.link != nil {
		s.drop(s.link, errRedial)
	}
	s.pump()
}

// errRedial ends what is under way when a connection is given up for a new one.
var errRedial = errors.New("the connection was given up: the address may lead to another server by now")

// longDial is how long a connection may take that only calls without a deadline wait for.
const longDial = 5 * time.Second
