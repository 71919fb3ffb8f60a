package quorumtest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquorum/redquorum/internal/redisserver"
)

// A Proxy stands between a client and a server. It hands on what comes until it is told otherwise; it goes on accepting
// in any case, as the kernel of a server does that nobody reaches. Who goes past it still sees the server.
type Proxy struct {
	listener net.Listener
	server   string

	// Cut swallows whatever comes, in both directions, as a network does that is partitioned.
	Cut               atomic.Bool
	Requests, Replies Flow
	gate              atomic.Pointer[chan struct{}] // set: what comes is kept until it is closed
	HungUp, Broken    atomic.Int64                  // connections that the server closed, and that Reset broke

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed chan struct{}
	group  sync.WaitGroup
}

// A Flow is one direction, and what has become of what came.
type Flow struct {
	Lost  atomic.Bool
	delay atomic.Int64

	Passed, Vanished, Delayed, Kept atomic.Int64
	Said                            [len(Remarks)]atomic.Int64
}

// Remarks are words of a server that show what it does with a request.
var Remarks = [...]string{"NOPERM", "can't run this command", "OOM", "NOSCRIPT", "stranger"}

// note counts the remarks in what has passed.
func (f *Flow) note(b []byte) {
	f.Passed.Add(1)
	for i, remark := range Remarks {
		if bytes.Contains(b, []byte(remark)) {
			f.Said[i].Add(1)
		}
	}
}

// StartProxy starts a proxy, for the length of the test.
func StartProxy(t *testing.T, server *redisserver.Server) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server.Addr(), conns: map[net.Conn]struct{}{}, closed: make(chan struct{})}
	p.group.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the address to go by.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", p.server)
		if err != nil {
			reset(client) // as near as it gets to a connection that is refused
			continue
		}
		if !p.open(client, server) {
			return
		}
		p.group.Go(func() { p.pass(server, client, &p.Requests) })
		p.group.Go(func() { p.pass(client, server, &p.Replies) })
	}
}

// open registers connections, so that they can be broken. It fails once the proxy is closed.
func (p *Proxy) open(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		for _, conn := range conns {
			_ = conn.Close()
		}
		return false
	default:
	}
	for _, conn := range conns {
		p.conns[conn] = struct{}{}
	}
	return true
}

// pass hands bytes on, as the proxy is told to.
func (p *Proxy) pass(to, from net.Conn, f *Flow) {
	if _, err := io.Copy(valve{p, f, to}, from); err == nil && f == &p.Replies {
		p.HungUp.Add(1)
	}
	_ = to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
}

// A valve lets bytes through, now or later, or lets them vanish.
type valve struct {
	p  *Proxy
	f  *Flow
	to net.Conn
}

func (v valve) Write(b []byte) (int, error) {
	if delay := time.Duration(v.f.delay.Load()); delay > 0 {
		v.f.Delayed.Add(1)
		late := time.NewTimer(delay)
		defer late.Stop()
		select {
		case <-late.C:
		case <-v.p.closed:
			return 0, net.ErrClosed
		}
	}
	// Also for whoever has gone away meanwhile: the network does not know.
	if gate := v.p.gate.Load(); gate != nil {
		v.f.Kept.Add(1)
		select {
		case <-*gate:
		case <-v.p.closed:
			return 0, net.ErrClosed
		}
	}
	if v.p.Cut.Load() || v.f.Lost.Load() {
		v.f.Vanished.Add(1)
		return len(b), nil
	}
	v.f.note(b)
	return v.to.Write(b)
}

// Slow delays what comes, by so much in each direction.
func (p *Proxy) Slow(requests, replies time.Duration) {
	p.Requests.delay.Store(int64(requests))
	p.Replies.delay.Store(int64(replies))
}

// Hold keeps what comes until Mend.
func (p *Proxy) Hold() {
	gate := make(chan struct{})
	if !p.gate.CompareAndSwap(nil, &gate) {
		panic("a proxy is held twice")
	}
}

// Mend ends whatever the proxy was told, and delivers what it kept.
func (p *Proxy) Mend() {
	p.Cut.Store(false)
	p.Requests.Lost.Store(false)
	p.Replies.Lost.Store(false)
	p.Slow(0, 0)
	if gate := p.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// Reset breaks all connections, and what is under way in them is gone.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		reset(conn)
		p.Broken.Add(1)
	}
}

// reset closes a connection with a RST in place of a FIN.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0) // fails only for one that is closed
	_ = conn.Close()
}

// Close ends the proxy. Closing twice is fine.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
}
