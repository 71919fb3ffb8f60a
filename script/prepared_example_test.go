package script_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/redquorum/redquorum/script"
)

// A request is a script with its keys and arguments, for any client.
func ExampleRequest() {
	var req script.Request = script.Release{Name: "stock", Holder: "me:1", Payload: script.Free, Token: 7, TTL: 30 * time.Second}
	fmt.Println(req.Script().Name)
	fmt.Println(req.Keys())
	fmt.Println(req.Args()...)
	// Output:
	// release
	// [stock redquorum_fence:{stock}]
	// me:1 redisson_lock__channel:{stock} 0 7 86400000
}

// Servers know a script by its hash once they have seen its source.
func ExampleScript() {
	for _, s := range script.All() {
		if s.Name == "inspect" {
			fmt.Println(len(s.SHA), strings.Contains(s.Source, "redis.call('TIME')"))
		}
	}
	// Output: 40 true
}

// What all nodes are asked alike is put together once, and sealed for each.
func ExamplePrepared() {
	prepared := script.Prepare(script.Inspect{Name: "stock"})
	for node := range 2 {
		words := prepared.CommandWithSource(&script.Seal{Last: int64(1000 + node)})
		fmt.Println(words[0], words[2:5])
	}
	// Output:
	// EVAL [2 stock redquorum_fence:{stock}]
	// EVAL [2 stock redquorum_fence:{stock}]
}

// What comes after its last moment, on the node's own clock, does nothing.
func ExampleSeal() {
	c, done := server()
	defer done()

	req := script.Acquire{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Proposal: 1, Clamp: time.Hour}
	late := script.Seal{Last: 1} // in 1970
	answer, err := c.Do(context.Background(), script.Prepare(req).CommandWithSource(&late)...).Result()
	if err != nil {
		log.Fatal(err)
	}
	reply, err := script.ParseReply(answer)
	fmt.Println(reply.Status, err)
	ask(c, script.Inspect{Name: "stock"})
	// Output:
	// expired <nil>
	// inspect: absent
}
