package node_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/script"
)

// started returns a node whose server is inside the process.
func started(options ...node.Option) (n *node.Node, server *embedded.Cluster, done func()) {
	server, err := embedded.Start(1)
	if err != nil {
		log.Fatal(err)
	}
	n, err = node.Open(server.URLs()[0], options...)
	if err != nil {
		log.Fatal(err)
	}
	return n, server, func() {
		_ = n.Close()
		server.Close()
	}
}

// One node is one vote, and no lock: package quorum asks several. The request has a budget, its context's, and a last
// moment, at which it may take effect on the node's own clock.
func ExampleNode() {
	n, _, done := started()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	acquire := script.Acquire{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Proposal: 1, Clamp: time.Hour}
	reply, err := n.Run(ctx, acquire, n.Clock().Now().Add(5*time.Second))
	fmt.Println(reply.Status, err)

	holder, _, err := n.Look(ctx, "stock")
	fmt.Println(holder, err)
	// Output:
	// granted <nil>
	// me:1 <nil>
}

// A node far away serves more requests at once where more batches are under way.
func ExampleOption() {
	n, _, done := started(node.WithBatches(8))
	defer done()

	reply, err := n.Run(context.Background(), script.Inspect{Name: "stock"}, n.Clock().Now().Add(time.Minute))
	fmt.Println(reply.Status, err)
	// Output: absent <nil>
}

// An error tells whether the request may have taken effect: that of a server which is down was never sent.
func ExampleError() {
	n, server, done := started()
	defer done()
	server.Stop(0)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := n.Run(ctx, script.Inspect{Name: "stock"}, n.Clock().Now().Add(5*time.Second))
	var failed *node.Error
	if errors.As(err, &failed) {
		fmt.Println("it names the node:", failed.Node == n.Name())
		fmt.Println("sent:", failed.Sent, "refused:", failed.Refused)
	}
	fmt.Println("worth trying again:", !node.Permanent(err))
	// Output:
	// it names the node: true
	// sent: false refused: false
	// worth trying again: true
}

// A listener hears of every subscription before it hears a message: what came earlier, nobody heard.
func ExampleEvent() {
	n, _, done := started()
	defer done()
	ctx := context.Background()

	events := make(chan node.Event, 10)
	stop := n.Listen(script.Channel("stock"), 5*time.Second, func(e node.Event) { events <- e })
	defer stop()
	fmt.Println("subscribed:", (<-events).Subscribed)

	until := n.Clock().Now().Add(time.Minute)
	acquire := script.Acquire{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Proposal: 1, Clamp: time.Hour}
	if _, err := n.Run(ctx, acquire, until); err != nil {
		log.Fatal(err)
	}
	release := script.Release{Name: "stock", Holder: "me:1", Payload: script.Free, TTL: 30 * time.Second}
	if _, err := n.Run(ctx, release, until); err != nil {
		log.Fatal(err)
	}
	fmt.Println("free:", (<-events).Payload == script.Free)
	// Output:
	// subscribed: true
	// free: true
}

// With a guard, every new connection looks at the node's record before its first request. A node without one is new, or
// has forgotten everything: what that means is for whoever asks all nodes.
func ExampleGuard() {
	n, _, done := started()
	defer done()
	n.Guard(node.Guard{
		Client:  func() string { return "example" },
		Nodes:   1,
		TTL:     func() time.Duration { return 30 * time.Second },
		Checked: func(r script.Record) { fmt.Println("found:", r.Standing) },
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	record, err := n.Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// It is the only node, so all of them are new.
	err = n.Settle(ctx, record, 0, n.Clock().Now().Add(5*time.Second))
	fmt.Println(err)
	// Output:
	// found: unsettled
	// found: unsettled
	// found: settled
	// <nil>
}
