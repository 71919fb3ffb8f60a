package node

import (
	"errors"
	"net"
	"time"
)

// partingConn is a connection with TLS that tells why the server hung up.
//
// With TLS 1.3 the client has shaken hands before the server has looked at its certificate. If the server will not have
// it, it sends an alert and hangs up, and a request that is written after that fails with no more than "connection reset",
// while the alert waits to be read.
//
// It shows nobody the socket below: go-redis would look there before it sends a command, see the bytes of an alert or of a
// session ticket, and take them for a reply.
type partingConn struct{ net.Conn }

// Write is the connection's, but for what it says when it fails.
func (c partingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	var timeout net.Error
	if err == nil || errors.Is(err, net.ErrClosed) || errors.As(err, &timeout) && timeout.Timeout() {
		return n, err
	}
	// The connection is of no use any more, and what the server said has arrived.
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, said := c.Read(make([]byte, 1))
	var alert *net.OpError
	if errors.As(said, &alert) && alert.Op == "remote error" {
		return n, said
	}
	return n, err
}
