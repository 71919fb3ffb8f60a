// Package embedded runs N Redis nodes inside the process, for a first look, for
// demos and for the tests of programs that take locks. Each is a server of its
// own on a loopback port, to be stopped, restarted with or without its data, or
// hung, while clients hold connections to it:
//
//	cluster, err := embedded.Start(5)
//	...
//	defer cluster.Close()
//	use(cluster.URLs()...)     // redis://127.0.0.1:port, five of them
//	cluster.Stop(0)            // connections break, new ones are refused
//	cluster.Restart(0, false)  // back on its port, empty, as after a crash
//
// Keys expire as time passes, while a node is stopped too, and Lua scripts run.
//
// # What it is not
//
// The nodes are [miniredis], which speaks Redis' protocol and is not Redis. Never
// use them in production: they live and die with the process and so protect
// nothing from its failure. Beyond that:
//
//   - Nothing is persisted. keepData is memory that the process still has, and
//     so more than a real crash would leave.
//   - There is no CONFIG, no INFO server, no replication, no access control.
//   - Lua is an interpreter written in Go; numbers print differently there.
//   - Each command costs time in proportion to the number of keys. Measure
//     against real servers.
//
// [miniredis]: https://github.com/alicebob/miniredis
package embedded
