package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// A dialFunc connects, within its context.
type dialFunc func(ctx context.Context) (net.Conn, error)

// lateConn is a connection that is made by its first write, within that write's deadline.
//
// go-redis dials in a goroutine of its own, under a timeout of its own, stops dialling for a second at a time after
// some failures, and prints every failure to standard error. A lock needs none of this: it wants the whole of a
// request, its connection included, to end when the request's budget does. To go-redis a lateConn is always there;
// dialling becomes a part of the handshake, which keeps to the request's deadline.
type lateConn struct {
	dial   dialFunc
	cancel context.CancelFunc // ends a dial that is under way when the connection is closed
	ctx    context.Context

	mu          sync.Mutex
	conn        net.Conn        // nil until the first write
	raw         syscall.RawConn // its socket, made once: it is looked at before every request
	err         error           // what dialling or Close said
	read, write time.Time
}

func newLateConn(dial dialFunc) *lateConn {
	ctx, cancel := context.WithCancel(context.Background())
	return &lateConn{dial: dial, ctx: ctx, cancel: cancel}
}

// made returns the connection if it has been made.
func (c *lateConn) made() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil && c.err == nil {
		return nil, errNotConnected
	}
	return c.conn, c.err
}

var errNotConnected = errors.New("not connected yet")

// Write dials if need be. go-redis writes from one goroutine at a time, so nobody else dials meanwhile.
func (c *lateConn) Write(p []byte) (int, error) {
	conn, err := c.made()
	if errors.Is(err, errNotConnected) {
		conn, err = c.connect()
	}
	if err != nil {
		return 0, err
	}
	return conn.Write(p)
}

// connect dials outside the mutex: Close must not wait for a server that does not answer.
func (c *lateConn) connect() (net.Conn, error) {
	c.mu.Lock()
	deadline := c.write
	c.mu.Unlock()

	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(c.ctx, deadline)
	}
	conn, err := c.dial(ctx)
	cancel()

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil: // closed meanwhile
		if conn != nil {
			_ = conn.Close()
		}
		return nil, c.err
	case err != nil:
		c.err = &dialError{err}
		return nil, c.err
	}
	c.conn, c.raw = conn, rawConn(conn)
	if err := errors.Join(conn.SetReadDeadline(c.read), conn.SetWriteDeadline(c.write)); err != nil {
		return nil, err
	}
	return conn, nil
}

func (c *lateConn) Read(p []byte) (int, error) {
	conn, err := c.made()
	if err != nil {
		return 0, err
	}
	return conn.Read(p)
}

// Close resets the connection (the dialler set SO_LINGER 0): go-redis closes a connection only when a request on it
// was given up, or when nothing is under way.
func (c *lateConn) Close() error {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = net.ErrClosed
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

func (c *lateConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *lateConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	if c.conn == nil {
		return nil
	}
	return c.conn.SetReadDeadline(t)
}

func (c *lateConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	if c.conn == nil {
		return nil
	}
	return c.conn.SetWriteDeadline(t)
}

func (c *lateConn) LocalAddr() net.Addr  { return c.addr(net.Conn.LocalAddr) }
func (c *lateConn) RemoteAddr() net.Addr { return c.addr(net.Conn.RemoteAddr) }

func (c *lateConn) addr(of func(net.Conn) net.Addr) net.Addr {
	if conn, err := c.made(); err == nil {
		return of(conn)
	}
	return &net.TCPAddr{}
}

// lateSocket is a lateConn without TLS of ours. It lets go-redis look whether the server has hung up before it uses an
// idle connection. Over TLS that look would see the bytes of a session ticket and take them for a reply.
type lateSocket struct{ *lateConn }

func (c lateSocket) SyscallConn() (syscall.RawConn, error) {
	if _, err := c.made(); err != nil {
		return nil, err
	}
	return c.raw, nil
}

// rawConn returns what lets one look at a connection's socket.
func rawConn(conn net.Conn) syscall.RawConn {
	if socket, ok := conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			return raw
		}
	}
	return opaque{}
}

// opaque is what a caller's own dialler may return: no socket. There is nothing to look at, so it looks healthy.
type opaque struct{}

func (opaque) Control(func(uintptr)) error    { return nil }
func (opaque) Read(func(uintptr) bool) error  { return nil }
func (opaque) Write(func(uintptr) bool) error { return nil }

// dialError marks an error as "no connection": nothing can have been sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dialSocket connects to a TCP or unix address, with TLS if config is not nil.
func dialSocket(network, addr string, config *tls.Config) dialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3,
		}}
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		forget(conn)
		if config == nil {
			return conn, nil
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return partingConn{secure}, nil
	}
}

// forget makes Close drop what the kernel has not delivered yet. A connection that is closed the usual way delivers a
// given-up request when the partition heals.
func forget(conn net.Conn) {
	if inner, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = inner.NetConn() // a caller's own dialler may bring TLS
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that is dead already
	}
}
