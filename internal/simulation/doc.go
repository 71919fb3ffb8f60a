// Package simulation is a world of Redis nodes and clients in fake time: what a seeded test of the whole protocol runs
// in.
//
// A [World] lives in a testing/synctest bubble. Its nodes are small Redis servers that run the real Lua sources, each on
// a clock of its own; its clients are the real ones, go-redis included, each on a clock of its own too; and between a
// client and a node lies a network of messages that are late, lost, sent twice, or arrive after their connection was
// closed. A [Plan] is the list of what goes wrong and when.
//
// # What is guaranteed
//
//   - Everything is drawn from the seed. What befalls a message follows from the seed, the path, the moment and the
//     message, never from the order in which goroutines run. So the same seed gives the same run, as long as the
//     program under test does not itself depend on a race between two events of one nanosecond.
//   - A connection delivers in order, as TCP does. Across connections there is no order.
//   - A node keeps time as Redis does: keys expire at a millisecond of its own wall clock.
//
// # What is not
//
// A node is no Redis: it knows the commands that locks use and answers as Redis 7.0 would. In two things its Lua is not
// Redis': a number that becomes a string by ".." keeps its digits, and a script cannot be stopped. The scripts' own
// tests run on real servers for that.
//
// A paused client is not quite still: timers and contexts of Go's own go on, so that it gives up what it waits for, and
// whoever was waiting for neither a message nor an alarm of its clock, nor in [Client.Sleep], goes on too.
package simulation
