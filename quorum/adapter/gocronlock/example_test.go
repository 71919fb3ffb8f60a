package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
	"github.com/redquorum/redquorum/quorum/adapter/gocronlock"
)

// Every replica of a service has this scheduler. Each hour one of them sends the report.
func Example() {
	nodes, err := embedded.Start(5) // in production: five independent Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	locks, err := quorum.Open(quorum.Config{}, nodes.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	locker, err := gocronlock.New(locks, gocronlock.Config{MinHold: 100 * time.Millisecond}) // for a job once an hour: a minute
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	sent := make(chan struct{})
	hourly, err := scheduler.NewJob(gocron.CronJob("0 * * * *", false),
		locker.Task("report", func(ctx context.Context) error { // ctx ends when the lock is lost
			fmt.Println("sent, with a token to compare:", quorum.LeaseFrom(ctx).Token() > 0)
			close(sent)
			return nil
		}),
		gocron.WithName("report"))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	_ = hourly.RunNow() // for this example is no hour long
	<-sent

	// First the jobs, then what is left of their locks' minimum, then the locks.
	fmt.Println(scheduler.Shutdown(), locker.Drain(context.Background()))
	// Output:
	// sent, with a token to compare: true
	// <nil> <nil>
}
