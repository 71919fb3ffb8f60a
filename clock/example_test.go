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

// An Instant that was never set is before everything, so a lease whose end somebody forgot to set is over.
func ExampleInstant() {
	var end clock.Instant
	now := clock.System().Now()
	fmt.Println("over:", !now.Before(end))
	fmt.Println("still over:", !now.Before(end.Add(time.Hour)))

	end = now.Add(time.Second)
	fmt.Println("left:", end.Sub(now))
	// Output:
	// over: true
	// still over: true
	// left: 1s
}

// late is a clock that a test moves on at will. What it does not have it takes from the real one.
type late struct {
	clock.Clock
	by time.Duration
}

func (l *late) Now() clock.Instant { return l.Clock.Now().Add(l.by) }

// Whatever measures a lease takes a Clock, so that a test can let an hour pass.
func ExampleClock() {
	c := &late{Clock: clock.System()}
	end := clock.Validity(c.Now(), 30*time.Second, clock.Drift(30*time.Second, 0.01, c.Uncertainty()))
	fmt.Println("valid:", c.Now().Before(end))
	c.by = time.Hour
	fmt.Println("valid an hour later:", c.Now().Before(end))
	// Output:
	// valid: true
	// valid an hour later: false
}

// Elsewhere than on Linux, and in the fake time of tests, the clock is made of what time.Now says, and knows its error.
func ExamplePortable() {
	c := clock.NewPortable()
	before := c.Now()
	time.Sleep(time.Millisecond)
	fmt.Println("at least:", c.Now().Sub(before) >= time.Millisecond)
	fmt.Println("a suspend that it may have missed:", c.Uncertainty())
	// Output:
	// at least: true
	// a suspend that it may have missed: 50ms
}

// Boot is there where the system has such a clock: Linux. System chooses.
func ExampleBoot() {
	c, err := clock.NewBoot()
	if err != nil {
		fmt.Println("0s") // not Linux
		return
	}
	fmt.Println(c.Uncertainty())
	// Output: 0s
}
