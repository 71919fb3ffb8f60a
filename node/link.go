package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// A link is one connection of a stream.
type link struct {
	stream *stream
	conn   net.Conn
	client *redis.Client // which made it

	// Guarded by the stream's mutex.
	flying  []*Call // in the order in which they were written; nil where the call's time was up
	batches []int   // how many of them left together
	loaded  int     // how many of the last ones are being written
	err     error   // why the connection was given up

	// Of the goroutine that reads.
	expected []*Call   // who is answered next
	got      []outcome // answers that are in
}

// errUnasked is an answer to nothing.
var errUnasked = errors.New("an answer that nobody asked for")

// connect makes a connection, from the dial to the credentials, and looks at the node before anything is asked of it.
func (n *Node) connect(ctx context.Context) (*link, error) {
	conn, err := n.dial(ctx)
	if err != nil {
		return nil, &dialError{err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // go-redis looks at the deadline alone
	defer stop()
	opts := *n.opts
	opts.PoolSize = 1
	opts.ReadBufferSize, opts.WriteBufferSize = handshake, handshake
	opts.Dialer = dialOnce(func(context.Context, string, string) (net.Conn, error) { return conn, nil })
	l := &link{stream: &n.stream, conn: conn, client: redis.NewClient(&opts)}
	err = n.greet(ctx, l.client.Conn()) // which is never given back: it is ours from now on
	if err == nil {
		err = conn.SetDeadline(time.Time{}) // go-redis' last one
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// handshake is how many bytes of buffers go-redis gets for what it says on a connection.
const handshake = 4 << 10

// close resets the connection (the dialler set SO_LINGER 0): it ends when what is under way was given up, or when nothing
// is.
func (l *link) close() {
	if p, ok := l.conn.(partingConn); ok {
		if secure, ok := p.Conn.(*tls.Conn); ok {
			_ = secure.NetConn().Close() // first: TLS would say goodbye, and wait for room to say it in
		}
	}
	_ = l.conn.Close()
	_ = l.client.Close()
}

// full tells whether nothing may be sent for now: as many batches are under way as there may be, or an answer is overdue,
// and who was sent behind it would wait in vain.
func (l *link) full(most int) bool {
	return len(l.batches) >= most || len(l.flying) > 0 && l.flying[0] == nil
}

// Read reads for replies: what was read before is handed on before it waits for more.
func (l *link) Read(p []byte) (int, error) {
	l.stream.settle(l)
	n, err := l.conn.Read(p)
	l.stream.mu.Lock()
	l.expected = append(l.expected[:0], l.flying...)
	l.stream.mu.Unlock()
	return n, err
}

// asker tells who is answered next.
func (l *link) asker() asker {
	i := len(l.got)
	switch {
	case i >= len(l.expected) || l.expected[i] == nil:
		return asker{plain: true} // nobody, any more
	case l.expected[i].Request == nil:
		return asker{plain: true}
	}
	return asker{holder: l.expected[i].Request.Holder()}
}

// land takes the calls that were answered off the connection. It fails if there were fewer of them than answers. It is
// called with the stream's mutex held.
func (l *link) land() bool {
	n := len(l.got)
	if n > len(l.flying) {
		return false
	}
	for i, c := range l.flying[:n] {
		l.got[i].call = c
	}
	rest := copy(l.flying, l.flying[n:])
	clear(l.flying[rest:])
	l.flying = l.flying[:rest]
	whole := 0
	for whole < len(l.batches) && n >= l.batches[whole] {
		n -= l.batches[whole]
		whole++
	}
	l.batches = l.batches[:copy(l.batches, l.batches[whole:])]
	if len(l.batches) > 0 {
		l.batches[0] -= n
	}
	return true
}
