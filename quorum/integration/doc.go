// Package integration has no code: its tests show what a quorum of real servers does, which stop, die, forget, and are
// reached over real connections.
package integration
