package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// floor is what any client of N nodes has to do at the least: send two commands to each, and read a majority of the
// replies. Whoever calls next shares the write with all that wait, so it is pipelined as well as can be.
type floor struct {
	pipes  []*pipe
	joined errgroup.Group
}

func openFloor(ctx context.Context, urls []string, _ time.Duration) (Locker, error) {
	f := &floor{}
	for _, u := range urls {
		p, err := dialPipe(ctx, u)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.pipes = append(f.pipes, p)
		f.joined.Go(p.write)
		f.joined.Go(p.read)
	}
	return f, nil
}

// Lock sends SET to all nodes. It locks nothing.
func (f *floor) Lock(ctx context.Context, name string) (Lease, error) {
	return floorLease{f, name}, f.round(ctx, fmt.Appendf(nil,
		"*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\n1\r\n$2\r\nPX\r\n$5\r\n30000\r\n", len(name), name))
}

func (f *floor) round(ctx context.Context, request []byte) error {
	b := &ballot{majority: int64(len(f.pipes)/2 + 1), decided: make(chan struct{})}
	for _, p := range f.pipes {
		p.send(request, b)
	}
	select {
	case <-b.decided:
		if b.broken.Load() {
			return errBroken
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close breaks the connections and joins their goroutines.
func (f *floor) Close() error {
	for _, p := range f.pipes {
		p.close()
	}
	return f.joined.Wait()
}

type floorLease struct {
	f    *floor
	name string
}

func (l floorLease) Release(ctx context.Context) error {
	return l.f.round(ctx, fmt.Appendf(nil, "*2\r\n$3\r\nDEL\r\n$%d\r\n%s\r\n", len(l.name), l.name))
}

// ballot counts replies, whatever they say. A connection that broke counts, too, so that nobody waits for it.
type ballot struct {
	majority int64
	replies  atomic.Int64
	broken   atomic.Bool
	decided  chan struct{}
}

var errBroken = errors.New("a connection broke")

func (b *ballot) reply(broken bool) {
	if broken {
		b.broken.Store(true)
	}
	if b.replies.Add(1) == b.majority {
		close(b.decided)
	}
}

// pipe is one connection: a queue that is written in one piece, and replies in the order of the requests.
type pipe struct {
	conn net.Conn

	mu     sync.Mutex
	wake   sync.Cond // by mu: there is something to write, or it is over
	queue  []byte
	asked  []*ballot // in the order of their replies
	closed bool
	broken bool
}

func dialPipe(ctx context.Context, u string) (*pipe, error) {
	opts, err := redis.ParseURL(u)
	if err != nil {
		return nil, err
	}
	if opts.TLSConfig != nil || opts.Password != "" || opts.DB != 0 {
		return nil, errors.New("knows nodes without TLS, password and database number only")
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(ctx, opts.Network, opts.Addr)
	if err != nil {
		return nil, err
	}
	p := &pipe{conn: conn}
	p.wake.L = &p.mu
	return p, nil
}

func (p *pipe) send(request []byte, b *ballot) {
	p.mu.Lock()
	broken := p.broken
	if !broken {
		p.queue = append(p.queue, request...)
		p.asked = append(p.asked, b)
	}
	p.mu.Unlock()
	if broken {
		b.reply(true)
		return
	}
	p.wake.Signal()
}

func (p *pipe) write() error {
	var batch []byte
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.wake.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return nil
		}
		batch, p.queue = p.queue, batch[:0]
		p.mu.Unlock()
		if _, err := p.conn.Write(batch); err != nil {
			_ = p.conn.Close() // read tells those that wait
			return p.fail(err)
		}
	}
}

// read takes replies, of which each is one line here.
func (p *pipe) read() error {
	r := bufio.NewReader(p.conn)
	for {
		if _, err := r.ReadSlice('\n'); err != nil {
			return p.fail(err)
		}
		p.mu.Lock()
		b := p.asked[0]
		p.asked[0] = nil
		p.asked = p.asked[1:]
		p.mu.Unlock()
		b.reply(false)
	}
}

func (p *pipe) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wake.Signal()
	_ = p.conn.Close()
}

// fail ends all that wait for replies, and returns the error unless it is that of close.
func (p *pipe) fail(err error) error {
	p.mu.Lock()
	asked, closed := p.asked, p.closed
	p.asked, p.queue, p.broken = nil, nil, true
	p.mu.Unlock()
	for _, b := range asked {
		b.reply(true)
	}
	if closed {
		return nil
	}
	return err
}
