//go:build !unix

package docker

import "net"

// wasReset would tell whether the sender of a connection has reset it. Here only the reader learns that.
func wasReset(*net.TCPConn) bool { return false }
