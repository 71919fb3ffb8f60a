package node_test

import (
	"fmt"
	"time"

	"github.com/redquorum/redquorum/node"
	"github.com/redquorum/redquorum/script"
)

// answers takes what a node said.
type answers chan script.Reply

func (a answers) Answered(reply script.Reply, err error) {
	if err != nil {
		fmt.Println(err)
	}
	a <- reply
}

// Whoever asks several nodes the same prepares it once, and waits for none of them.
func ExampleCall() {
	n, _, done := started()
	defer done()

	told := make(answers, 1) // it must not block
	var to node.Receiver = told
	end := time.Now().Add(5 * time.Second)
	n.Send(&node.Call{Request: script.Prepare(script.Inspect{Name: "stock"}), Deadline: end, To: to})
	fmt.Println((<-told).Status)
	// Output: absent
}
