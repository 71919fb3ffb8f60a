// Package loopback hands out loopback ports that stay ours.
//
// A test that stops a server and starts it again needs the same port back.
// Between the two the port is free, and on a busy machine it does not stay so:
// every other test binary asks the kernel for ports at the same time, and every
// client that reconnects takes one for its own end. The classic way, listen on
// port 0, close, use the number, loses that race now and then.
//
// [Reserve] closes it where the kernel allows: on Linux a socket that is bound
// but never listens keeps the port from being handed out to anybody, refuses
// connections like a closed port, and does not stand in the way of a server
// that binds the port by its number. Elsewhere the port is merely picked, and
// callers retry.
package loopback
