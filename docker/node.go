package docker

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"github.com/testcontainers/testcontainers-go"
)

// node is an address that stays, and a server behind it that comes and goes. The
// cluster holds mu while it calls the methods, but for id and close.
type node struct {
	engine  *testcontainers.DockerClient
	options Options
	label   string
	gate    *gate
	known   bool // its address has been told

	mu      sync.Mutex // serializes the life of the server
	server  *server    // nil before the first start, and after one that failed
	running bool
	closed  bool
}

func (n *node) id() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return ""
	}
	return n.server.box.GetContainerID()
}

var errDown = errors.New("it is down")

func (n *node) pause(ctx context.Context) error {
	if !n.running {
		return errDown
	}
	return n.server.pause(ctx)
}

func (n *node) unpause(ctx context.Context) error {
	if !n.running {
		return errDown
	}
	return n.server.unpause(ctx)
}

func (n *node) stop(ctx context.Context) error { return n.end(ctx, (*server).stop) }

func (n *node) kill(ctx context.Context) error { return n.end(ctx, (*server).kill) }

// end takes the server down, and then the way to it.
func (n *node) end(ctx context.Context, how func(*server, context.Context) error) error {
	if !n.running {
		return nil
	}
	if err := how(n.server, ctx); err != nil {
		return err
	}
	n.running = false
	return n.gate.lead("")
}

// restart ends the server if it runs and starts one again. What a container wrote
// to its disk stays with the container, so to forget that takes a new one.
func (n *node) restart(ctx context.Context, keepData bool) error {
	persists := n.options.Persistence == Always
	if keepData && !persists {
		return errors.New("keeping data: the node has none on its disk, it was started without persistence")
	}
	if err := n.kill(ctx); err != nil {
		return err
	}
	if n.server != nil && persists && !keepData {
		if err := n.server.remove(ctx); err != nil {
			return err
		}
		n.server = nil
	}
	var err error
	if n.server == nil {
		n.server, err = launch(ctx, n.engine, n.options.Image, n.label, n.options.Persistence)
	} else {
		err = n.server.start(ctx)
	}
	if err != nil {
		return err
	}
	n.running = true
	addr, err := n.server.ready(ctx)
	if err != nil {
		return err
	}
	return n.lead(addr)
}

// lead leads to a server that is up.
//
// The engine publishes containers at ports of its own choice, one number after the other, and a reservation does not
// stand in its way. Where it has taken the node's before anybody was told of it, the node takes another.
func (n *node) lead(addr string) error {
	err := n.gate.lead(addr)
	for !n.known && errors.Is(err, syscall.EADDRINUSE) {
		gate, e := newGate()
		if e != nil {
			return errors.Join(err, e)
		}
		n.gate.close()
		n.gate = gate
		err = n.gate.lead(addr)
	}
	n.known = n.known || err == nil
	return err
}

func (n *node) close(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		n.gate.close()
	}
	if n.server == nil {
		return nil
	}
	if err := n.server.remove(ctx); err != nil {
		return err
	}
	n.server, n.running = nil, false
	return nil
}
