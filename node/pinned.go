package node

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// The connections of a node behind Sentinel: to the server that it is at the moment, and to the sentinels. See sentinel.go.

// dial connects to the server that is the node.
func (s *sentinels) dial(ctx context.Context) (net.Conn, error) {
	addr, _, err := s.rely(ctx)
	if err != nil {
		return nil, &Error{Node: s.node.name, Err: err}
	}
	opts := s.opts
	opts.Addr = addr
	dial, _ := dialer(opts, "tcp")
	conn, err := dial(ctx)
	if err != nil {
		s.doubt()
		return nil, err
	}
	p := &pinned{Conn: conn, to: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr != addr || s.closed {
		_ = conn.Close()
		return nil, &Error{Node: s.node.name, Err: fmt.Errorf("%s is not its master any more", addr)}
	}
	s.conns[p] = struct{}{}
	return p, nil
}

// pinned is a connection to the server that was the node when it was made.
type pinned struct {
	net.Conn
	to *sentinels
}

func (p *pinned) Close() error {
	p.to.mu.Lock()
	_, open := p.to.conns[p]
	delete(p.to.conns, p)
	p.to.mu.Unlock()
	if !open {
		return nil // take has closed it
	}
	return p.Conn.Close()
}

// SyscallConn lets go-redis look at an idle connection: see lateSocket.
func (p *pinned) SyscallConn() (syscall.RawConn, error) { return rawConn(p.Conn), nil }

// whileOpen makes what a dialler brings end with s. go-redis prints something when a client is closed while a question is
// under way; so the connections end first, and with them the questions.
func (s *sentinels) whileOpen(dial dialFunc) dialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.over, cancel)()
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return &mortal{Conn: conn, forget: context.AfterFunc(s.over, func() { _ = conn.Close() })}, nil
	}
}

// mortal is a connection that somebody else may end.
type mortal struct {
	net.Conn
	forget func() bool
}

func (m *mortal) Close() error {
	if !m.forget() {
		return nil // it is closed already, or about to be
	}
	return m.Conn.Close()
}

// SyscallConn lets go-redis look at an idle connection: see lateSocket.
func (m *mortal) SyscallConn() (syscall.RawConn, error) { return rawConn(m.Conn), nil }
