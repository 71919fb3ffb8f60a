// Package gocronlock makes the jobs of gocron schedulers that run in several processes run in one of them, under a lock
// of package quorum. A [Locker] goes where gocron takes one: gocron.WithDistributedLocker for all jobs of a scheduler,
// gocron.WithDistributedJobLocker for one.
//
// # What is guaranteed
//
//   - Two runs of one job, which is what has one name, never overlap, for as long as the lease of the first lives.
//   - Two runs of one job begin at least [Config.MinHold] apart, wherever they run. A lock that is given back as soon as
//     the job is done keeps nobody out: the job takes a millisecond, and the other process, whose clock is five behind,
//     finds the lock free when the same tick comes to it. So the lock is kept for MinHold after its grant, however short
//     the job was.
//   - Hence every tick is run once, if the processes come to it within MinHold of each other, and ticks are further
//     apart than MinHold and what the processes' clocks differ by.
//   - Nobody waits: who does not get the lock skips the tick. gocron.AfterLockError hears why. The error matches
//     quorum.ErrNotAcquired where the job runs, or has just run, and quorum.ErrNoQuorum where too few nodes answered.
//   - A job that was begun by [Locker.Task] has a context that ends when the lease is lost, and the lease's fencing
//     token; others find both by [Locker.Lease].
//
// # What is not
//
//   - That a tick is run at all: it is not where no quorum of nodes answers, and not again where the process that runs it
//     dies. The next tick is run when the dead process's lease has run out, a TTL and a little more later.
//   - That a job stops when its lease is lost. gocron hands jobs a context of its own, which knows nothing of locks, and
//     a job may be paused before it looks. What must not be done twice compares the token (see docs/fencing).
//   - The rest of a MinHold, once a coordinator is closed: that frees all its locks. [Locker.Drain] waits for it; call it
//     between the scheduler's Shutdown and the coordinator's Close. A process that dies keeps the lock for what is left
//     of the lease's TTL, so a MinHold that is longer than two thirds of that is cut short by a death.
//   - Ticks of a gocron.DurationJob are counted from the start of each process, and so lie anywhere between those of
//     another. Give all of them the same gocron.WithStartAt, or a MinHold little shorter than the duration, or a cron
//     expression.
package gocronlock
