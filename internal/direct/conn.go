package direct

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is a connection that is made by its first write.
type conn struct {
	dial func(context.Context) (net.Conn, error)
	ctx  context.Context // ends with Close
	end  context.CancelFunc

	mu          sync.Mutex
	made        net.Conn // nil before the first write
	err         error    // why there is none, and will be none
	read, write time.Time
}

func newConn(dial func(context.Context) (net.Conn, error)) *conn {
	c := &conn{dial: dial}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

var errNotMade = errors.New("direct: nothing was written yet")

// get returns the connection if it has been made.
func (c *conn) get() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return nil, c.err
	case c.made == nil:
		return nil, errNotMade
	}
	return c.made, nil
}

func (c *conn) Write(p []byte) (int, error) {
	made, err := c.get()
	if errors.Is(err, errNotMade) {
		made, err = c.connect()
	}
	if err != nil {
		return 0, err
	}
	return made.Write(p)
}

// connect dials outside the mutex, so that Close ends it. go-redis writes from one goroutine at a time.
func (c *conn) connect() (net.Conn, error) {
	c.mu.Lock()
	deadline := c.write
	c.mu.Unlock()
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	made, err := c.dial(ctx)
	cancel()

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.err = err
		return nil, err
	case c.err != nil: // closed meanwhile
		_ = made.Close()
		return nil, c.err
	}
	c.made = made
	return made, errors.Join(made.SetReadDeadline(c.read), made.SetWriteDeadline(c.write))
}

func (c *conn) Read(p []byte) (int, error) {
	made, err := c.get()
	if err != nil {
		return 0, err
	}
	return made.Read(p)
}

func (c *conn) Close() error {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	if c.made == nil {
		return nil
	}
	return c.made.Close()
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.until(t, &c.read, net.Conn.SetReadDeadline)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.until(t, &c.write, net.Conn.SetWriteDeadline)
}

// until sets a deadline, of a connection that is still to be made too.
func (c *conn) until(t time.Time, deadline *time.Time, set func(net.Conn, time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*deadline = t
	if c.made == nil {
		return nil
	}
	return set(c.made, t)
}

func (c *conn) LocalAddr() net.Addr  { return c.addr(net.Conn.LocalAddr) }
func (c *conn) RemoteAddr() net.Addr { return c.addr(net.Conn.RemoteAddr) }

func (c *conn) addr(of func(net.Conn) net.Addr) net.Addr {
	if made, err := c.get(); err == nil {
		return of(made)
	}
	return &net.TCPAddr{}
}

// SyscallConn lets go-redis look whether the server has hung up before it uses an idle connection again.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	made, err := c.get()
	if err != nil {
		return nil, err
	}
	if socket, ok := made.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return unseen{}, nil
}

// unseen is a connection into which one cannot look, such as one with TLS. It passes for healthy.
type unseen struct{}

func (unseen) Control(func(uintptr)) error    { return nil }
func (unseen) Read(func(uintptr) bool) error  { return nil }
func (unseen) Write(func(uintptr) bool) error { return nil }
