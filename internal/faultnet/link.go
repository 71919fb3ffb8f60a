package faultnet

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A link carries one connection's data in both directions.
type link struct {
	node           *Node
	cable          *Cable
	client, server net.Conn
	once           sync.Once
	broken         chan struct{} // closed by cut
	gate           atomic.Pointer[chan struct{}]
}

func (l *link) start() {
	requests, replies := newStream(), newStream()
	// A client that closes leaves behind what it has sent: the stream to the server ends, it is not thrown away.
	go func() { l.collect(l.client, requests, true); requests.end() }()
	go func() { l.collect(l.server, replies, false); replies.end() }()
	go func() {
		l.deliver(requests, l.server)
		l.cut()
	}()
	go func() {
		l.deliver(replies, l.client)
		_ = l.client.Close()
	}()
}

// cut breaks the connection: what is under way is gone.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.broken)
		_ = l.client.Close()
		_ = l.server.Close()
		l.node.drop(l)
	})
}

// collect reads what one side sends.
func (l *link) collect(from net.Conn, to *stream, toServer bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if delay, lost := l.node.conditions(toServer); !lost && !l.cable.isCut(l.node) {
				to.add(piece{data: append([]byte(nil), buf[:n]...), due: time.Now().Add(delay + l.cable.delay(l.node))})
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes it to the other side, when it is due and while the node runs.
func (l *link) deliver(from *stream, to net.Conn) {
	for {
		p, ok := from.next(l.broken)
		if !ok {
			return
		}
		if wait := time.Until(p.due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-l.broken:
				timer.Stop()
				return
			}
		}
		if gate := l.gate.Load(); gate != nil {
			select {
			case <-*gate:
			case <-l.broken:
				return
			}
		}
		for {
			held := l.node.running()
			if held == nil {
				held = l.cable.held(l.node)
			}
			if held == nil {
				break
			}
			select {
			case <-held:
			case <-l.broken:
				return
			}
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// piece is some data that may be delivered from due on.
type piece struct {
	data []byte
	due  time.Time
}

// stream is an unbounded queue of pieces: like a kernel's buffers, it takes what is sent to a node that hangs.
type stream struct {
	mu     sync.Mutex
	queue  []piece
	ended  bool
	signal chan struct{}
}

func newStream() *stream { return &stream{signal: make(chan struct{}, 1)} }

func (s *stream) add(p piece) {
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	s.notify()
}

func (s *stream) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.notify()
}

func (s *stream) notify() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// next waits for a piece; false when there will be none any more.
func (s *stream) next(broken <-chan struct{}) (piece, bool) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			p := s.queue[0]
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return p, true
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return piece{}, false
		}
		select {
		case <-s.signal:
		case <-broken:
			return piece{}, false
		}
	}
}
