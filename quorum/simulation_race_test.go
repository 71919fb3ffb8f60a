//go:build race

package quorum_test

// The race detector makes everything several times slower, and has the scheduler run goroutines in random order.
func init() { simDefault, simRepeats, thousand = simDefault/10, false, thousand/4 }
