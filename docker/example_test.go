package docker_test

import (
	"context"
	"log"

	"github.com/redquorum/redquorum/docker"
	"github.com/redquorum/redquorum/quorum"
)

// A lease on five real masters, of which two die.
func Example() {
	ctx := context.Background()
	cluster, err := docker.Start(ctx, 5, docker.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	locks, err := quorum.Open(quorum.Config{}, cluster.URLs()...)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Acquire(ctx, "stock")
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range []int{0, 1} {
		if err := cluster.Kill(i); err != nil {
			log.Fatal(err)
		}
	}
	if err := lease.Renew(ctx); err != nil { // three of five will do
		log.Fatal(err)
	}
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
}
