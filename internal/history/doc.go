// Package history is what happened in a run of clients that take locks, and the checkers that judge it.
//
// A [Recorder] takes in events as the clients see them; times are counted from the start of the run. The checkers know
// nothing about how the run was made: in fake time or on real servers.
//
// # What is checked
//
//   - [Exclusion]: at no time do two holders of one name believe in their leases.
//   - [Tokens]: a later holder's token is greater. Later is who asked after the other had been granted, or who was
//     granted later on every node that granted both.
//   - [Resource]: a resource that compares tokens is never written by an earlier holder after a later one.
//   - [Liveness]: once nothing goes wrong any more, everybody who waits gets the lock.
//   - [Linear]: the whole is what one lock on one machine could have done, on which a grant may expire. It sees more than
//     Exclusion: renewals, nested holds and releases must find the lock held, too.
//
// # What is not
//
// A history without grants on nodes orders holders only by what the clients saw; of two that asked at the same time
// either may have the greater token.
package history
