package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	readyTimeout = 15 * time.Second // far more than a server takes on a busy machine
	readyPoll    = 2 * time.Millisecond
)

// errPortTaken is the one start-up failure that another port cures.
var errPortTaken = errors.New("the port is taken")

// findBinary resolves the binary that was asked for, or the environment's.
func findBinary(binary string) (string, error) {
	if binary == "" {
		binary = os.Getenv("REDQUORUM_REDIS_SERVER")
	}
	if binary == "" {
		binary = "redis-server"
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	return path, nil
}

// awaitReady returns when the process answers requests, or says why it never
// will. It listens on all its ports before it answers on any.
func (s *Server) awaitReady(p *process) error {
	deadline := time.Now().Add(readyTimeout)
	for {
		err := ping(s.Addr(), deadline)
		// The order matters: a process that could not have its port has
		// exited, and the answer was somebody else's.
		if p.exited() {
			return s.exitReason()
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %v: %w", readyTimeout, err)
		}
		time.Sleep(readyPoll)
	}
}

// exitReason tells a lost race for the port from everything else that ends a
// server at its start, such as an argument that it does not know.
func (s *Server) exitReason() error {
	addrs := []string{s.Addr()}
	if s.secure != nil {
		addrs = append(addrs, s.SecureAddr())
	}
	for _, addr := range addrs {
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			return fmt.Errorf("%w: %w", errPortTaken, err)
		}
		_ = l.Close()
	}
	return errors.New("the process exited at its start")
}

// ping asks for any sign of a server that is done loading. NOAUTH is one: a
// server may want a password without our knowing it.
func ping(addr string, deadline time.Time) error {
	d := net.Dialer{Deadline: deadline}
	c, err := d.DialContext(context.Background(), "tcp4", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NOAUTH") {
		return nil
	}
	return fmt.Errorf("PING was answered %q", strings.TrimSpace(reply))
}
