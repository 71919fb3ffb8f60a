package loopback

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve binds a socket to a port of the kernel's choice and does not listen.
//
// SO_REUSEADDR is what lets the server in: two sockets may share an address as
// long as both set it and no more than one listens. Go's listeners and
// redis-server both do. The kernel itself, choosing a port for somebody else,
// passes over one that is bound, by whatever option.
func reserve() (number int, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, nil, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, nil, os.NewSyscallError("bind", err)
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return 0, nil, os.NewSyscallError("getsockname", err)
	}
	return addr.(*unix.SockaddrInet4).Port, func() { _ = unix.Close(fd) }, nil
}
