package loopback

import (
	"fmt"
	"net"
	"strconv"
)

// A Port is one TCP port on 127.0.0.1.
type Port struct {
	number int
	free   func() // ends the reservation
}

// Reserve picks a free port and keeps it until Release. A server may listen on
// it, stop and listen again, any number of times; until one listens,
// connections are refused.
func Reserve() (*Port, error) {
	number, release, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("loopback: reserving a port: %w", err)
	}
	return &Port{number: number, free: release}, nil
}

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Addr is the port as host:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Release gives the port back to the kernel. Call it once, after the last
// server on it has stopped.
func (p *Port) Release() { p.free() }
