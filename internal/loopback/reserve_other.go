//go:build !linux

package loopback

import "net"

// reserve picks a port that is free now. Nothing keeps it so: on the BSDs and
// on Windows a bound socket would keep our own server out as well.
func reserve() (number int, release func(), err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, func() {}, nil
}
