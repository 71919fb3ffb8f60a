package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2"

	"github.com/redquorum/redquorum/internal/loopback"
)

// ErrClosed is returned by Restart once the cluster is closed.
var ErrClosed = errors.New("embedded: cluster is closed")

// launchAttempts bounds the search for a port that nobody takes from us between
// choosing it and listening on it. Where ports can be reserved the first will do.
const launchAttempts = 5

// instance is one node: an address that stays, and a server that comes and goes.
type instance struct {
	port *loopback.Port

	mu      sync.Mutex // serializes the life of the server
	server  *miniredis.Miniredis
	running bool
	hung    bool // we hold the server's own lock
	closed  bool
}

func launch() (*instance, error) {
	var errs error
	for range launchAttempts {
		port, err := loopback.Reserve()
		if err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		in := &instance{port: port}
		if err = in.restart(false); err == nil {
			return in, nil
		}
		port.Release()
		errs = err
	}
	return nil, errs
}

func (in *instance) addr() string { return in.port.Addr() }

func (in *instance) restart(keepData bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	in.stopLocked()
	if keepData && in.server != nil {
		if err := forgetScripts(in.server); err != nil {
			return fmt.Errorf("embedded: restarting %s: %w", in.addr(), err)
		}
	} else {
		in.server = miniredis.NewMiniRedis()
		// Without this, time stands still for TTLs until a test moves it.
		in.server.ClockTTL(true)
	}
	if err := in.server.StartAddr(in.addr()); err != nil {
		return fmt.Errorf("embedded: starting %s: %w", in.addr(), err)
	}
	in.running = true
	return nil
}

func (in *instance) stop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stopLocked()
}

func (in *instance) stopLocked() {
	if !in.running {
		return
	}
	in.resumeLocked() // miniredis needs its lock to close
	in.server.Close()
	in.running = false
}

// hang takes the lock under which miniredis runs each command and each script.
// So a script is either done or not begun, as in a real server.
func (in *instance) hang() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.running && !in.hung {
		in.server.Lock()
		in.hung = true
	}
}

func (in *instance) resume() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.resumeLocked()
}

func (in *instance) resumeLocked() {
	if in.hung {
		in.hung = false
		in.server.Unlock()
	}
}

func (in *instance) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	in.closed = true
	in.stopLocked()
	in.port.Release()
}

// forgetScripts empties the script cache of a closed server. No real server keeps
// its cache across a restart, and a client that relies on it must not get away
// with it here. miniredis has no call for it; but it has a command, and serves a
// connection in memory before it has a listener that others could reach.
func forgetScripts(m *miniredis.Miniredis) error {
	// Close cancelled the context under which blocking commands wait.
	m.Ctx, m.CtxCancel = context.WithCancel(context.Background())
	conn, err := m.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n")); err != nil {
		return err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if reply != "+OK\r\n" {
		return fmt.Errorf("SCRIPT FLUSH was answered %q", reply)
	}
	m.Close()
	m.Ctx, m.CtxCancel = context.WithCancel(context.Background())
	return nil
}
