package clock_test

import (
	"fmt"
	"time"

	"github.com/redquorum/redquorum/clock"
)

// A lease of 30 s, as the holder may believe in it.
func Example() {
	c := clock.System()
	const ttl = 30 * time.Second

	start := c.Now() // before the first request leaves
	// ... a quorum of nodes grants the lock ...
	end := clock.Validity(start, ttl, clock.Drift(ttl, 0.01, c.Uncertainty()))
	fmt.Println("granted in time:", c.Now().Before(end))

	done := c.NewAlarm()
	defer done.Stop()
	done.Set(end)

	select {
	case <-done.C():
		fmt.Println("the lease has ended")
	default:
		fmt.Println("believed until just before the TTL:", end.Before(start.Add(ttl)))
	}
	// Output:
	// granted in time: true
	// believed until just before the TTL: true
}

// A factor of 1/64 makes the figures come out even.
func ExampleDrift() {
	fmt.Println(clock.Drift(32*time.Second, 1.0/64, 0))
	fmt.Println(clock.Drift(32*time.Second, 1.0/64, 50*time.Millisecond))
	// Output:
	// 502ms
	// 552ms
}

// An alarm can be moved while it waits; the earlier setting is forgotten.
func ExampleAlarm() {
	c := clock.System()
	a := c.NewAlarm()
	defer a.Stop()

	a.Set(c.Now().Add(time.Hour))
	a.Set(c.Now().Add(time.Millisecond))
	<-a.C()
	fmt.Println("fired")
	// Output: fired
}

// Where every attempt starts with a reading and the system call shows, a cached one will do as the start.
func ExampleCached() {
	c := clock.System()
	cached := clock.NewCached(c, time.Millisecond)
	defer cached.Close()

	start := cached.Start()
	fmt.Println("never from the future:", !start.After(c.Now()))
	// Output: never from the future: true
}
