package quorum_test

import (
	"fmt"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/quorum"
)

// What follows from a TTL: docs/choosing.md has more of it.
func ExampleConfig() {
	cfg := quorum.Config{TTL: 10 * time.Second, NodeTimeout: 500 * time.Millisecond}
	fmt.Println("valid:", cfg.Validate() == nil)

	drift := clock.Drift(cfg.TTL, quorum.DefaultDriftFactor, 0) // 0: the clock's uncertainty, on Linux
	free := cfg.TTL + drift + cfg.NodeTimeout
	const look = 1500 * time.Millisecond // of whoever waits
	fmt.Println("free after", free.Round(time.Millisecond), "and taken after", (free + look).Round(time.Millisecond))
	fmt.Println("outlasts", (cfg.TTL/2 - drift - 2*cfg.NodeTimeout).Round(time.Millisecond))

	cfg.TTL = time.Second
	fmt.Println("a TTL of a second is refused:", cfg.Validate() != nil)
	// Output:
	// valid: true
	// free after 10.602s and taken after 12.102s
	// outlasts 3.898s
	// a TTL of a second is refused: true
}
