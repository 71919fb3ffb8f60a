// Package node talks to one Redis master: connections made by go-redis and hardened for locks, the scripts of package
// script run within a budget, and the release messages of its channels.
//
// Scripts of all goroutines go over one connection (stream.go), release messages come over another (hear.go).
//
// # What is guaranteed
//
//   - Every call ends at its context's deadline, whatever the server does: a server that hangs, a connection that
//     cannot be made, a handshake that is never answered.
//   - An error tells whether the request may have reached the server ([Sent]). Only what was sent can have taken
//     effect.
//   - A request carries its last moment on the server's own clock; what the network delivers later does nothing. The
//     offset between the clocks is learnt at every connect and refined by every reply.
//   - Nothing is ever sent twice behind the caller's back: go-redis' retries are off, and a connection on which nobody
//     waits any longer for what was sent is reset (SO_LINGER 0), so that the kernel does not deliver it after all.
//   - A password never appears in an error or a log.
//   - Behind Sentinel ([NewFailover]) a request goes to the server that more than half of the sentinels named within the last two
//     seconds, or nowhere.
//
// # What is not
//
// A Node knows nothing of quorums, and its subscriptions are hints: messages that are published while a connection is
// down are lost, which is why a listener also hears of every new connection.
package node
