// Package renew is the watchdog: one scheduler for all the leases that a client holds.
//
// It decides when, never how. A [Watchdog] calls a lease back when its renewal is due and when its end has come, on a
// clock that goes on during a suspend; a [Cadence] says when the next renewal is due.
//
// # What is guaranteed
//
//   - Expire is called promptly once a lease's end has come, whatever its renewals are doing: the watchdog never waits
//     for a node.
//   - One goroutine and one alarm serve any number of leases, and neither exists before the first lease.
//
// # What is not
//
// Promptly is not at once. Who must know whether a lease has ended compares its end with the clock; the callback is
// for those who are waiting to be told.
package renew
