package loopback

import (
	"net"
	"runtime"
	"testing"
)

func reservePort(t *testing.T) *Port {
	t.Helper()
	p, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p
}

func TestServerMayListenStopAndListenAgain(t *testing.T) {
	p := reservePort(t)
	for range 3 {
		l, err := net.Listen("tcp4", p.Addr())
		if err != nil {
			t.Fatalf("listening on a reserved port: %v", err)
		}
		c, err := net.Dial("tcp4", p.Addr())
		if err != nil {
			t.Fatalf("dialing the server on a reserved port: %v", err)
		}
		// The server's end closes first and keeps the port in TIME_WAIT,
		// as a killed server does to the one that follows it.
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		c.Close()
		l.Close()
	}
}

func TestReservedPortRefusesConnections(t *testing.T) {
	p := reservePort(t)
	if c, err := net.Dial("tcp4", p.Addr()); err == nil {
		c.Close()
		t.Fatalf("somebody answered on %s, where nobody listens", p.Addr())
	}
}

// The kernel picks from some ten thousand ports: a reservation that did not
// hold would show up among a few thousand picks.
func TestKernelPassesReservedPortsOver(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ports are reserved on Linux only")
	}
	ours := map[int]bool{}
	for range 200 {
		p := reservePort(t)
		if ours[p.Number()] {
			t.Fatalf("port %d was handed out twice", p.Number())
		}
		ours[p.Number()] = true
	}
	for range 5000 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if n := l.Addr().(*net.TCPAddr).Port; ours[n] {
			t.Errorf("the kernel gave reserved port %d away", n)
		}
		l.Close()
	}
}
