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
	words := script.Prepare(req).Command(script.Seal{}, false)
	fmt.Println(req.Script().Name)
	fmt.Println(words[2:5]...) // how many keys, and the keys
	fmt.Println(words[5:]...)  // the seal, and the arguments
	// Output:
	// release
	// 2 stock redquorum_fence:{stock}
	// 0 me:1 redisson_lock__channel:{stock} 0 7 86400000
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
		words := prepared.Command(script.Seal{Last: int64(1000 + node)}, true)
		fmt.Println(words[0], words[2:])
	}
	// Output:
	// EVAL [2 stock redquorum_fence:{stock} 1000]
	// EVAL [2 stock redquorum_fence:{stock} 1001]
}

// What comes after its last moment, on the node's own clock, does nothing.
func ExampleSeal() {
	c, done := server()
	defer done()

	req := script.Acquire{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Proposal: 1, Clamp: time.Hour}
	late := script.Seal{Last: 1} // in 1970
	answer, err := c.Do(context.Background(), script.Prepare(req).Command(late, true)...).Result()
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

// A client that reads replies itself hands over the values.
func ExampleValues() {
	reply := script.Values{Status: "held", Fence: 7, PTTL: 1500, Holder: "me:1", Count: 1, Now: 1795262400123457}.Reply()
	fmt.Println(reply.Status == script.Held, reply.TTL, reply.Holder)
	// Output: true 1.5s me:1
}
