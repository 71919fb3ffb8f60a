package script_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquorum/redquorum/node/embedded"
	"github.com/redquorum/redquorum/script"
)

// server returns a client of an empty server inside the process.
func server() (c *redis.Client, done func()) {
	cluster, err := embedded.Start(1)
	if err != nil {
		log.Fatal(err)
	}
	opts, err := redis.ParseURL(cluster.URLs()[0])
	if err != nil {
		log.Fatal(err)
	}
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c = redis.NewClient(opts)
	return c, func() {
		_ = c.Close()
		cluster.Close()
	}
}

// ask runs a request that may take effect at any time, and prints what it did.
func ask(c *redis.Client, req script.Request) script.Reply {
	reply, err := send(context.Background(), c, req, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", req.Script().Name, reply.Status)
	return reply
}

// Whoever comes first has it. Asked again, the same holder has it already.
func ExampleAcquire() {
	c, done := server()
	defer done()

	first := script.Acquire{Name: "stock", Holder: "first:1", Count: 1, TTL: 30 * time.Second, Proposal: 1, Clamp: time.Hour}
	second := first
	second.Holder = "second:1"
	ask(c, first)
	fmt.Println("held by", ask(c, second).Holder)
	ask(c, first)
	// Output:
	// acquire: granted
	// acquire: held
	// held by first:1
	// acquire: already
}

// A renewal states what shall be: it extends a lock, and restores one that this node never had.
func ExampleRenew() {
	c, done := server()
	defer done()

	renewal := script.Renew{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Token: 7}
	ask(c, renewal)
	ask(c, renewal)
	fmt.Println(c.HGetAll(context.Background(), script.LockKey("stock")).Val())
	// Output:
	// renew: restored
	// renew: renewed
	// map[me:1:1]
}

// The token of a lease is stored where it was granted a smaller one, for as long as the lock is the holder's.
func ExampleRaise() {
	c, done := server()
	defer done()

	ask(c, script.Renew{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Token: 7})
	fmt.Println(ask(c, script.Raise{Name: "stock", Holder: "me:1", Token: 9, TTL: 30 * time.Second}).Fence)
	// Output:
	// renew: restored
	// raise: raised
	// 9
}

// A release takes away what is the holder's, and nothing else.
func ExampleRelease() {
	c, done := server()
	defer done()

	ask(c, script.Renew{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Token: 7})
	ask(c, script.Release{Name: "stock", Holder: "somebody:1", Payload: script.Free, TTL: 30 * time.Second})
	ask(c, script.Release{Name: "stock", Holder: "me:1", Payload: script.Free, TTL: 30 * time.Second})
	// Output:
	// renew: restored
	// release: held
	// release: released
}

// A force-release in two steps: nobody whose revocation is stored gets the lock back by its next renewal.
func ExampleForceRelease() {
	c, done := server()
	defer done()

	renewal := script.Renew{Name: "stock", Holder: "me:1", Count: 1, TTL: 30 * time.Second, Token: 7}
	ask(c, renewal)
	ask(c, script.Revoke{Name: "stock", Holders: []string{"me:1"}, Lives: time.Minute})
	ask(c, script.ForceRelease{Name: "stock", Holders: []string{"me:1"}})
	ask(c, renewal)
	// Output:
	// renew: restored
	// revoke: stored
	// force_release: released
	// renew: revoked
}

// A look changes nothing.
func ExampleInspect() {
	c, done := server()
	defer done()

	ask(c, script.Inspect{Name: "stock"})
	ask(c, script.Renew{Name: "stock", Holder: "me:1", Count: 2, TTL: 30 * time.Second, Token: 7})
	seen := ask(c, script.Inspect{Name: "stock"})
	fmt.Println(seen.Holder, seen.Count, seen.Fence)
	// Output:
	// inspect: absent
	// renew: restored
	// inspect: held
	// me:1 2 7
}

// A probe runs what the other scripts need, and leaves nothing.
func ExampleProbe() {
	c, done := server()
	defer done()

	ask(c, script.Probe{Name: "scratch"})
	fmt.Println(c.DBSize(context.Background()).Val())
	// Output:
	// probe: probed
	// 0
}

// A reply says what the script did, and what it found.
func ExampleReply() {
	reply, err := script.ParseReply([]any{"held", int64(7), int64(1500), "somebody:1", int64(1), int64(1_795_262_400_123_457)})
	fmt.Println(reply.Status, reply.Fence, reply.TTL, reply.Holder, reply.Count, err)

	_, err = script.ParseReply("PONG")
	fmt.Println("another answer is an error:", err != nil)
	// Output:
	// held 7 1.5s somebody:1 1 <nil>
	// another answer is an error: true
}

// Each script's header says with which statuses it answers.
func ExampleStatus() {
	c, done := server()
	defer done()

	switch reply := ask(c, script.Inspect{Name: "stock"}); reply.Status {
	case script.Absent:
		fmt.Println("nobody has it")
	case script.Held:
		fmt.Println("it is held by", reply.Holder)
	}
	// Output:
	// inspect: absent
	// nobody has it
}
