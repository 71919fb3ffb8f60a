package quorum

import "testing"

func TestEventReachesWhoWaitsBeforeAndAfter(t *testing.T) {
	var e event
	before := e.wait()
	select {
	case <-before:
		t.Fatal("it has not happened")
	default:
	}
	e.happen()
	e.happen() // once is enough
	<-before
	<-e.wait()

	var unseen event
	unseen.happen()
	<-unseen.wait()
}
