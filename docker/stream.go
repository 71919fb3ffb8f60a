package docker

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// stream carries one direction of a connection, from one end to the other.
//
// It goes on reading while its direction is withheld, for only the reader learns
// that the sender has reset the connection. What the sender had sent before is then
// thrown away, as the sender's kernel would have done: it keeps what was not
// acknowledged and sends it again when the network is back, after an orderly close,
// too, but not after a reset. A lock client closes hard for this very reason.
func (g *gate) stream(d direction, from, to *net.TCPConn) {
	q := &queue{filled: make(chan struct{}, 1)}
	var reader sync.WaitGroup
	reader.Go(func() { q.fill(from) })
	defer reader.Wait()
	for range q.filled {
		var ended bool
		err := g.pass(d, func() {
			if wasReset(from) {
				// The reader may not have come to it yet, and what it has read is not to be delivered any more.
				reset(to)
				ended = true
				return
			}
			data, end := q.take()
			if len(data) > 0 {
				_ = to.SetWriteDeadline(time.Now().Add(passTimeout))
				if _, err := to.Write(data); err != nil {
					// The other stream of this connection reads why, and
					// carries it to the sender, if that direction is open.
					ended = true
					return
				}
			}
			switch {
			case end == nil:
				return
			case errors.Is(end, io.EOF):
				_ = to.CloseWrite()
			default:
				reset(to)
			}
			ended = true
		})
		if err != nil || ended {
			break
		}
	}
	// Whoever still sends does so to nobody. The reader ends with the connection:
	// by its own end, the other stream's reset, or the gate's close.
}

// queue is what was read and not yet passed on. It has no bound, like no kernel's;
// but what withheld clients of a lock send is little.
type queue struct {
	filled chan struct{} // has a token when there is something to take

	mu   sync.Mutex
	data []byte
	end  error // io.EOF after an orderly end, anything else after a reset
}

func (q *queue) fill(from net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		q.mu.Lock()
		q.data = append(q.data, buf[:n]...)
		if err != nil {
			q.end = err
			if !errors.Is(err, io.EOF) {
				q.data = nil
			}
		}
		q.mu.Unlock()
		select {
		case q.filled <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (q *queue) take() (data []byte, end error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	data, q.data = q.data, nil
	return data, q.end
}
