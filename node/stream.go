package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redquorum/redquorum/script"
)

// A stream lets the requests of all goroutines to one node share a connection, and its round trips.
//
// A request that finds the line free goes out at once, on the caller's own goroutine: nobody is handed anything, and
// nobody waits for company. While as many batches are under way as there may be, requests queue up, and leave together
// when the answers to a batch are in. So the load makes the batches: one caller has none, and a hundred share a write and a
// read. On the way a request keeps what it is alone: its own deadline, its last moment as of the write, its own answer.
//
// go-redis makes the connection, from the dial to the credentials (link.go), and does all that is rare: checks, looks,
// subscriptions. What the locks are asked and answered goes over the connection without it, since its way is made for any
// command: a goroutine that waits, a place in a pool, a look whether the server has hung up, a context with a timer and
// a list of values of any type, for each request. Here one goroutine reads for all of them, and knows at once when the
// server hangs up; one timer watches over all deadlines; and a reply is read without a trace.
//
// A node that hangs holds up no more than the batches that are under way. What waits behind them leaves the queue at its
// own deadline, and was never sent. When nobody waits any longer for anything that is under way, the connection is reset.
type stream struct {
	node  *Node
	most  int           // batches under way at once
	slack time.Duration // how much later than at its deadline a call ends

	mu      sync.Mutex
	closed  bool
	waiting []*Call
	link    *link
	dialing context.CancelFunc // ends the dial that is under way; nil if there is none
	writing bool
	buf     []byte
	ended   []outcome // to be told when mu is free
	timer   *time.Timer
	due     time.Time // when the timer looks for what has to end; zero if it does not
	group   sync.WaitGroup
}

const (
	// defaultBatches: while the server works on one batch, the client writes or reads another.
	defaultBatches = 2
	// mostTogether bounds a batch, and so what is lost when its connection breaks, and how long the server is busy with it.
	mostTogether = 64
	// mostWaiting bounds the queue. What comes on top is refused at once: it would expire there.
	mostWaiting = 16384
)

// errFull is a request for which there was no room in the queue.
var errFull = errors.New("too many requests wait for this node")

// errLate is a request that left the queue after its last moment.
var errLate = errors.New("the request's last moment came while it waited for others")

// put sends calls as soon as it is their turn.
func (s *stream) put(calls ...*Call) {
	s.mu.Lock()
	defer s.unlock()
	for _, c := range calls {
		switch {
		case c.stage == left:
		case s.closed:
			s.finish(c, ErrClosed)
		case len(s.waiting) >= mostWaiting:
			s.finish(c, errFull)
		default:
			c.stage = queued
			c.waited = s.link != nil && s.link.full(s.most)
			s.waiting = append(s.waiting, c)
			s.expect(c.Deadline)
		}
	}
	s.pump()
}

// leave takes a call back that was not sent, and tells whether it did. It will not be told anything.
func (s *stream) leave(c *Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.stage {
	case queued:
		i := slices.Index(s.waiting, c)
		if i < 0 {
			return false // it has just ended
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
	case flying:
		return false
	case apart, left:
	}
	c.stage = left
	return true
}

// end tells a call that it failed before it was sent, unless it was left.
func (s *stream) end(c *Call, err error) {
	s.mu.Lock()
	gone := c.stage == left
	s.mu.Unlock()
	if !gone {
		s.node.tell(outcome{call: c, err: err})
	}
}

// finish ends a call with an error, as soon as mu is free.
func (s *stream) finish(c *Call, err error) {
	s.ended = append(s.ended, outcome{call: c, err: err})
}

// unlock frees mu and tells the calls that have ended.
func (s *stream) unlock() {
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	for _, o := range ended {
		s.node.answered(o)
	}
}

// pump sends what waits, as far as it may go. It is called with mu held, and gives it away while it writes.
func (s *stream) pump() {
	for !s.writing && !s.closed && len(s.waiting) > 0 {
		l := s.link
		switch {
		case l == nil:
			s.dial()
			return
		case l.full(s.most):
			return // the answers to a batch go on
		}
		s.load(l)
		if len(s.buf) == 0 {
			continue
		}
		s.writing = true
		if len(l.flying) > fewUnderWay || len(s.buf) > mostAtOnce {
			s.writeAside(l)
			return
		}
		s.write(l)
	}
}

// The kernel takes mostAtOnce bytes for a connection on which no more than fewUnderWay requests are under way, whatever the
// node does: its buffers have some 80 KiB at first, and a request has a few hundred bytes, or three thousand with its source.
const (
	mostAtOnce  = 8 << 10
	fewUnderWay = 16
)

// writeAside writes a batch for which the kernel may have no room, if the node takes nothing any more. Nobody shall wait for
// that who has other nodes to ask, or other answers to give.
func (s *stream) writeAside(l *link) {
	s.group.Go(func() {
		s.mu.Lock()
		defer s.unlock()
		s.write(l)
		s.pump()
	})
}

// write sends the batch that was put together. It is called with mu held, and gives it away while it writes.
func (s *stream) write(l *link) {
	s.mu.Unlock()
	n, err := l.conn.Write(s.buf)
	s.mu.Lock()
	s.writing = false
	if cap(s.buf) > mostKept {
		s.buf = nil
	}
	s.written(l, n, err)
}

// written takes in what became of the batch that was put together last. One of which nothing was written, since the
// connection had ended unnoticed, goes out over the next one. It is called with mu held.
func (s *stream) written(l *link, n int, err error) {
	if err == nil && s.link == l {
		l.loaded = 0
		return
	}
	if err == nil {
		err = l.err
	}
	s.drop(l, err)
	var again []*Call
	for _, c := range l.flying {
		switch {
		case c == nil:
		case n == 0 && !c.resent && !s.closed:
			c.resent, c.stage = true, queued
			again = append(again, c)
		default:
			s.finish(c, err)
		}
	}
	l.flying = nil
	s.waiting = append(again, s.waiting...)
}

// mostKept is how much of a long batch's room is kept for the next one.
const mostKept = 64 << 10

// load puts the next batch together. It is called with mu held.
func (s *stream) load(l *link) {
	n := min(len(s.waiting), mostTogether)
	s.buf = s.buf[:0]
	before, now := len(l.flying), s.node.clock.Now()
	for _, c := range s.waiting[:n] {
		if c.waited && !c.Until.IsZero() && !now.Before(c.Until) {
			s.finish(c, errLate)
			continue
		}
		if c.relies && s.node.sentinels.rests() { // the check of the connection may just have found that
			s.finish(c, ErrPromoted)
			continue
		}
		c.sent, c.last = now, 0
		if !c.Until.IsZero() {
			c.last, _ = s.node.offset.nodeTime(c.Until)
		}
		c.stage = flying
		l.flying = append(l.flying, c)
		if c.Request == nil {
			s.buf = appendCommand(s.buf, c.words)
			continue
		}
		s.buf = c.Request.Append(s.buf, script.Seal{Last: c.last, Incarnation: s.node.incarnation()}, c.bySource)
	}
	if n = copy(s.waiting, s.waiting[n:]); n == 0 && cap(s.waiting) > mostTogether {
		s.waiting = nil // what was long once is not kept
	} else {
		clear(s.waiting[n:])
		s.waiting = s.waiting[:n]
	}
	if l.loaded = len(l.flying) - before; l.loaded > 0 {
		l.batches = append(l.batches, l.loaded)
	}
}

// drop gives a connection up: nobody knows what became of what is under way. What is being written at this moment is left
// to whoever writes it. It is called with mu held.
func (s *stream) drop(l *link, err error) {
	if s.link != l {
		return
	}
	s.link, l.err = nil, err
	lost := max(0, len(l.flying)-l.loaded)
	for _, c := range l.flying[:lost] {
		if c != nil {
			s.finish(c, err)
		}
	}
	l.flying = l.flying[lost:]
	l.close()
}

// read takes the answers in, until the connection ends.
func (s *stream) read(l *link) {
	for r := newReplies(l, l.asker); ; {
		o, broken := r.next()
		if broken != nil {
			s.settle(l) // what came before the end
			s.mu.Lock()
			defer s.unlock()
			s.drop(l, broken)
			s.pump()
			return
		}
		l.got = append(l.got, o)
	}
}

// settle hands on the answers that are in, and sends the next batch if there is room for it now.
func (s *stream) settle(l *link) {
	if len(l.got) == 0 {
		return
	}
	s.mu.Lock()
	if s.link == l && !l.land() {
		s.drop(l, errUnasked)
	}
	s.pump()
	s.unlock()
	at := s.node.clock.Now() // a system call: not for each of them
	for _, o := range l.got {
		if o.call != nil {
			o.at = at
			s.node.answered(o)
		}
	}
	clear(l.got)
	l.got = l.got[:0]
}

// aside runs a task on a goroutine of its own, unless the stream is closed.
func (s *stream) aside(task func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.group.Go(task)
	return true
}

// close ends everything and joins the goroutines.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	for _, c := range s.waiting {
		s.finish(c, ErrClosed)
	}
	s.waiting = nil
	if s.dialing != nil {
		s.dialing()
	}
	if s.link != nil {
		s.drop(s.link, ErrClosed)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.unlock()
	s.group.Wait()
}
