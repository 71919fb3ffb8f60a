package quorum_test

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

// A proxy stands between a client and a server. It hands on what comes until it is told otherwise; it goes on accepting
// in any case, as the kernel of a server does that nobody reaches. Who goes past it still sees the server.
type proxy struct {
	listener net.Listener
	server   string

	cut               atomic.Bool // swallows whatever comes, in both directions, as a network does that is partitioned
	requests, replies flow
	gate              atomic.Pointer[chan struct{}] // set: what comes is kept until it is closed
	hungUp, broken    atomic.Int64                  // connections that the server closed, and that reset broke

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed chan struct{}
	group  sync.WaitGroup
}

// A flow is one direction, and what has become of what came.
type flow struct {
	lost  atomic.Bool
	delay atomic.Int64

	passed, vanished, delayed, kept atomic.Int64
	said                            [len(remarks)]atomic.Int64
}

// remarks are words of a server that show what it does with a request.
var remarks = [...]string{"NOPERM", "can't run this command", "OOM", "NOSCRIPT", "stranger"}

// note counts the remarks in what has passed.
func (f *flow) note(b []byte) {
	f.passed.Add(1)
	for i, remark := range remarks {
		if bytes.Contains(b, []byte(remark)) {
			f.said[i].Add(1)
		}
	}
}

// startProxy starts a proxy, for the length of the test.
func startProxy(t *testing.T, server *redisserver.Server) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: server.Addr(), conns: map[net.Conn]struct{}{}, closed: make(chan struct{})}
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// behindProxies starts a proxy for each server, and returns the addresses to go by.
func (m *machines) behindProxies() (proxies []*proxy, urls []string) {
	m.t.Helper()
	for _, s := range m.servers {
		p := startProxy(m.t, s)
		proxies, urls = append(proxies, p), append(urls, p.url())
	}
	return proxies, urls
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *proxy) accept() {
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
		p.group.Go(func() { p.pass(server, client, &p.requests) })
		p.group.Go(func() { p.pass(client, server, &p.replies) })
	}
}

// open registers connections, so that they can be broken. It fails once the proxy is closed.
func (p *proxy) open(conns ...net.Conn) bool {
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
func (p *proxy) pass(to, from net.Conn, f *flow) {
	if _, err := io.Copy(valve{p, f, to}, from); err == nil && f == &p.replies {
		p.hungUp.Add(1)
	}
	_ = to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
}

// A valve lets bytes through, now or later, or lets them vanish.
type valve struct {
	p  *proxy
	f  *flow
	to net.Conn
}

func (v valve) Write(b []byte) (int, error) {
	if delay := time.Duration(v.f.delay.Load()); delay > 0 {
		v.f.delayed.Add(1)
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
		v.f.kept.Add(1)
		select {
		case <-*gate:
		case <-v.p.closed:
			return 0, net.ErrClosed
		}
	}
	if v.p.cut.Load() || v.f.lost.Load() {
		v.f.vanished.Add(1)
		return len(b), nil
	}
	v.f.note(b)
	return v.to.Write(b)
}

// slow delays what comes, by so much in each direction.
func (p *proxy) slow(requests, replies time.Duration) {
	p.requests.delay.Store(int64(requests))
	p.replies.delay.Store(int64(replies))
}

// hold keeps what comes until mend.
func (p *proxy) hold() {
	gate := make(chan struct{})
	if !p.gate.CompareAndSwap(nil, &gate) {
		panic("a proxy is held twice")
	}
}

// mend ends whatever the proxy was told, and delivers what it kept.
func (p *proxy) mend() {
	p.cut.Store(false)
	p.requests.lost.Store(false)
	p.replies.lost.Store(false)
	p.slow(0, 0)
	if gate := p.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// reset breaks all connections, and what is under way in them is gone.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		reset(conn)
		p.broken.Add(1)
	}
}

// reset closes a connection with a RST in place of a FIN.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0) // fails only for one that is closed
	_ = conn.Close()
}

// close ends the proxy. Closing twice is fine.
func (p *proxy) close() {
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
