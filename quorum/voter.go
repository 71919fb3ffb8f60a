package quorum

import (
	"sync/atomic"
	"time"

	"github.com/redquorum/redquorum/node"
)

// A voter is a node of a coordinator, with what is known of how fast it answers and how its clock runs.
type voter struct {
	*node.Node
	c    *Coordinator
	i    int // which of its nodes it is
	name string

	typical atomic.Int64 // how long answers take, smoothed, in nanoseconds; 0 if none ever came
	silent  atomic.Bool  // the last request was not answered

	pace   pace
	health health
}

// answered takes in how long an answer took.
func (v *voter) answered(took time.Duration) {
	v.silent.Store(false)
	old := time.Duration(v.typical.Load())
	if old == 0 {
		old = took
	}
	// An eighth of the news, as TCP smooths its round trip (RFC 6298). A lost update between two does no harm.
	v.typical.Store(int64(max(1, old+(took-old)/8)))
}

// patience is how long to wait for this node, when the others have answered and it alone could bring news: twice its
// usual time. A node that was silent the last time is not waited for, and one that never answered has all of its time.
func (v *voter) patience(nodeTimeout time.Duration) time.Duration {
	typical := time.Duration(v.typical.Load())
	switch {
	case v.silent.Load():
		return 0
	case typical == 0:
		return nodeTimeout
	}
	return min(2*typical, nodeTimeout)
}
