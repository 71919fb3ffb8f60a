package script_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

// look checks a node's record.
func look(c *redis.Client, req script.Check) script.Record {
	ctx := context.Background()
	answer, err := c.Do(ctx, script.Prepare(req).Command(script.Seal{}, true)...).Result()
	if err != nil {
		log.Fatal(err)
	}
	found, err := script.ParseRecord(answer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the node is", found.Standing)
	return found
}

// A node without a record is new or has forgotten everything; Settle tells it which.
func ExampleCheck() {
	c, done := server()
	defer done()

	check := script.Check{Fresh: "first", TTL: 30 * time.Second, Nodes: 1}
	found := look(c, check)
	ask(c, script.Settle{Incarnation: found.Incarnation, Run: found.Run, TTL: check.TTL, Nodes: 1, Durable: script.NotDurable})
	look(c, check)
	// Output:
	// the node is unsettled
	// settle: settled
	// the node is settled
}

// It has forgotten: for 30 s it votes for nobody.
func ExampleSettle() {
	c, done := server()
	defer done()

	found := look(c, script.Check{Fresh: "first", TTL: 30 * time.Second, Nodes: 3})
	ask(c, script.Settle{
		Incarnation: found.Incarnation, Run: found.Run, Quarantine: 30 * time.Second, TTL: 30 * time.Second, Nodes: 3,
		Durable: script.NotDurable,
	})
	acquire := script.Acquire{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Proposal: 1, Clamp: time.Hour}
	seal := script.Seal{Incarnation: found.Incarnation}
	answer, err := c.Do(context.Background(), script.Prepare(acquire).Command(seal, true)...).Result()
	if err != nil {
		log.Fatal(err)
	}
	reply, err := script.ParseReply(answer)
	fmt.Println(reply.Status, err)
	// Output:
	// the node is unsettled
	// settle: settled
	// quarantined <nil>
}

// A record tells of one stretch of a node's memory. Another one begins when it was restarted.
func ExampleRecord() {
	c, done := server()
	defer done()

	check := script.Check{Fresh: "first", TTL: 30 * time.Second, Nodes: 3}
	found := look(c, check)
	fmt.Println(found.Incarnation, found.TTL)

	check.Fresh = "second" // needed only if one has to be begun
	fmt.Println(look(c, check).Incarnation)
	// Output:
	// the node is unsettled
	// first 30s
	// the node is unsettled
	// first
}

// Only a standing of settled lets a node vote.
func ExampleStanding() {
	c, done := server()
	defer done()

	switch found := look(c, script.Check{Fresh: "first", TTL: 30 * time.Second, Nodes: 3}); found.Standing {
	case script.StandingSettled:
		fmt.Println("in quarantine for", found.Quarantine)
	case script.StandingUnsettled:
		fmt.Println("ask all nodes what it is worth")
	case script.StandingReplica, script.StandingUnguarded:
		fmt.Println("no node")
	}
	// Output:
	// the node is unsettled
	// ask all nodes what it is worth
}

// A node that writes everything to disk before it answers has forgotten nothing when it comes back. A script cannot ask it
// for that, so the client does, and only when it matters.
func ExampleDurability() {
	check := script.Check{Fresh: "first", TTL: 30 * time.Second, Nodes: 3}
	fmt.Println(check.Durable == script.NotAsked)

	settings := map[string]string{"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
	check.Durable = script.NotDurable
	if settings["appendonly"] == "yes" && settings["appendfsync"] == "always" && settings["no-appendfsync-on-rewrite"] == "no" {
		check.Durable = script.Durable
	}
	fmt.Println(check.Durable)
	// Output:
	// true
	// yes
}
