// Package clock tells how long a lease may still be believed.
//
// A lease is a promise of the Redis nodes that expires on their clocks: whether or not the holder's machine
// was suspended in between, and whatever its wall clock was set to. So the holder measures with a
// monotonic clock that goes on during a suspend, which Go's [time.Now] does not on Linux, and stops
// believing a little before the nodes forget:
//
//	end = start + TTL - drift        [Validity]
//	drift = TTL × factor + 2 ms + the clock's own uncertainty        [Drift]
//
// [System] is the clock of the process: [Boot] (CLOCK_BOOTTIME) on Linux, elsewhere [Portable]. An [Alarm]
// reports the end of a lease. [Cached] saves the system call at the start of an attempt.
//
// # What is guaranteed
//
//   - Now is never stale and never goes back, across goroutines either, on either clock.
//   - Boot counts a suspend to the nanosecond; its alarms fire as soon as the machine is back.
//   - Portable reports an interval at most 50 ms shorter than it was, however often the machine was
//     suspended in it, as long as the wall clock was not set or slewed back in the meantime.
//   - Where a reading is in doubt it is late rather than early, and arithmetic ends at its limits
//     instead of wrapping round: a mistake costs a lease that would have been good, it does not
//     prolong one that is over. An [Instant] never set is before everything.
//   - An alarm never fires before its instant, and never on account of a setting that was replaced. Stop
//     leaves no goroutine, no file and no timer behind.
//
// # What is not
//
//   - A clock that runs at a wrong rate. The kernel slews CLOCK_BOOTTIME by up to 500 ppm, a quartz is
//     off by 100 ppm or so, here and on the node; a factor of 0.01 is 10,000 ppm. Two clocks that
//     disagree by more than the factor break the promise.
//   - A virtual machine that its host pauses, migrates or restores from a snapshot, and a process restored
//     from a checkpoint. Whether any clock inside learns of the lost time is up to the hypervisor.
//   - What happens between a reading and its use. A goroutine may be held up for any length of time after
//     it asked; that is what fencing tokens are for.
//   - Portable, where the wall clock is set back: it does not see a suspend that comes between the same
//     two readings, for as much as the clock was set back. Where it is set forward: that counts as a
//     suspend, ends leases early, and puts the reading ahead of the truth for good. An offset to a
//     node's TIME learnt before is then wrong by the step, in the direction that lets a request
//     expire too late; it has to be learnt anew. Boot has neither problem.
//   - Alarms without a timerfd are up to a second late after a suspend. Whoever needs to know reads Now.
//
// # What it costs
//
// On 2 cores of an AMD EPYC (virtual machine, Linux 6.18, TSC), Go 1.26, with other work going on. The ratios
// hold, absolute numbers are noisy. Nothing here allocates.
//
//	time.Now                47 ns
//	Boot.Now               314 ns    a real system call: x/sys does not go through the vDSO
//	Portable.Now            59 ns    from two goroutines at once the same: no lock is taken
//	Cached.Start           0.8 ns
//	Alarm.Set of Boot      980 ns    one reading and one timerfd_settime
//	Alarm.Set of Portable  110 ns
//	Drift                    8 ns
//
// An attempt takes a handful of readings, a round trip to a node fifty times as long as one of them; that is
// why Cached is an offer and not the rule.
package clock
