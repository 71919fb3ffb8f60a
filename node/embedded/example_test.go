package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/node/embedded"
)

// Any Redis client can talk to the nodes.
func ExampleStart() {
	cluster, err := embedded.Start(5)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	ctx := context.Background()
	for i, url := range cluster.URLs() {
		opts, err := redis.ParseURL(url)
		if err != nil {
			log.Fatal(err)
		}
		client := redis.NewClient(opts)
		fmt.Println(i, client.Ping(ctx).Val())
		client.Close()
	}
	// Output:
	// 0 PONG
	// 1 PONG
	// 2 PONG
	// 3 PONG
	// 4 PONG
}

// A node that crashes without persistence comes back at its address, with no
// memory of what it had granted.
func ExampleCluster_Restart() {
	cluster, err := embedded.Start(1)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	opts, err := redis.ParseURL(cluster.URLs()[0])
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(opts)
	defer client.Close()

	ctx := context.Background()
	client.Set(ctx, "lock", "mine", 0)

	cluster.Restart(0, true)
	fmt.Println("with its data:", client.Exists(ctx, "lock").Val())

	cluster.Restart(0, false)
	fmt.Println("without:", client.Exists(ctx, "lock").Val())
	// Output:
	// with its data: 1
	// without: 0
}
