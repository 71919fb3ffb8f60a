package renew_test

import (
	"fmt"
	"time"

	"github.com/redquorum/redquorum/clock"
	"github.com/redquorum/redquorum/renew"
)

// lease is one whose renewal fails: it hears that one is due, and then that its end has come.
type lease struct{ heard chan string }

// Renew starts the work and does not do it: the watchdog serves others, too.
func (l lease) Renew()  { l.heard <- "renew" }
func (l lease) Expire() { l.heard <- "expire" }

// A watchdog calls back when a renewal is due, and when the end has come.
func ExampleWatchdog() {
	clk := clock.System()
	dog := renew.NewWatchdog(clk)
	defer dog.Close()

	l := lease{make(chan string, 2)}
	now := clk.Now()
	dog.Watch(l, now.Add(time.Millisecond), now.Add(20*time.Millisecond))
	fmt.Println(<-l.heard)
	fmt.Println(<-l.heard)
	// Output:
	// renew
	// expire
}

// A Lease is whatever wants to be called: the watchdog knows no nodes.
func ExampleLease() {
	clk := clock.System()
	dog := renew.NewWatchdog(clk)
	defer dog.Close()

	var watched renew.Lease = lease{make(chan string, 2)}
	dog.Watch(watched, clock.Instant{}, clk.Now()) // never renewed, and over
	fmt.Println(<-watched.(lease).heard)
	// Output: expire
}

// A renewal that worked moves both times. One that is stopped is not called any more.
func ExampleWatch() {
	clk := clock.System()
	dog := renew.NewWatchdog(clk)
	defer dog.Close()

	l := lease{make(chan string, 2)}
	watch := dog.Watch(l, clk.Now(), clk.Now().Add(time.Hour))
	fmt.Println(<-l.heard)

	now := clk.Now()
	watch.Set(now.Add(time.Hour), now.Add(2*time.Hour))
	watch.Stop()
	fmt.Println("heard since:", len(l.heard))
	// Output:
	// renew
	// heard since: 0
}

// A third of the TTL, so that two renewals may fail; what fails is repeated soon, and then less and less often.
func ExampleCadence() {
	cadence := renew.Cadence{TTL: 30 * time.Second, NodeTimeout: 500 * time.Millisecond}
	start := clock.System().Now()
	fmt.Println("renewed after", cadence.Next(start).Sub(start))
	for n := 1; n <= 5; n++ {
		fmt.Println("failed", n, "times: again after", cadence.Again(start, n).Sub(start))
	}
	// Output:
	// renewed after 10s
	// failed 1 times: again after 500ms
	// failed 2 times: again after 1s
	// failed 3 times: again after 2s
	// failed 4 times: again after 4s
	// failed 5 times: again after 5s
}
