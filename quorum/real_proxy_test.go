package quorum_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redquorum/redquorum/internal/redisserver"
)

// A proxy stands between a client and a server, until it is cut: then it swallows whatever comes, in both directions,
// and goes on accepting, as a network does that is partitioned. Who goes past it still sees the server.
type proxy struct {
	listener net.Listener
	server   string
	cut      atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
	group sync.WaitGroup
}

// startProxy starts a proxy, for the length of the test.
func startProxy(t *testing.T, server *redisserver.Server) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: server.Addr()}
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
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
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.group.Go(func() { p.pass(server, client) })
		p.group.Go(func() { p.pass(client, server) })
	}
}

// pass hands bytes on, unless the proxy is cut.
func (p *proxy) pass(to, from net.Conn) {
	_, _ = io.Copy(valve{p, to}, from)
	_ = to.Close()
}

// A valve lets bytes through, or lets them vanish.
type valve struct {
	p  *proxy
	to net.Conn
}

func (v valve) Write(b []byte) (int, error) {
	if v.p.cut.Load() {
		return len(b), nil
	}
	return v.to.Write(b)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
}
