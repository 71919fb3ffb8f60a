//go:build unix

package docker

import (
	"net"

	"golang.org/x/sys/unix"
)

// wasReset tells whether the sender of a connection has reset it, without waiting and without taking anything from it.
func wasReset(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	found := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a file descriptor
		n, err := unix.Poll(fds, 0)
		found = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return err == nil && found
}
