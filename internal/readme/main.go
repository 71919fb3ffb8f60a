// Command readme is the first program of README.md.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/quorum"
)

func main() {
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
	err = locks.Do(context.Background(), "stock", func(ctx context.Context) error {
		fmt.Println("nobody else is here, until ctx ends")
		return nil
	})
	fmt.Println("done:", err)
}
