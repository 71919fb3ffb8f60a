package quorum

// An event happens once. It makes a channel only for who waits for it, since nobody waits for most of what may happen to a
// lease. Its owner's mutex guards it.
type event struct {
	channel  chan struct{}
	happened bool
}

// happen lets it happen, unless it has.
func (e *event) happen() {
	if e.channel != nil && !e.happened {
		close(e.channel)
	}
	e.happened = true
}

// wait returns a channel that is closed when it has happened.
func (e *event) wait() <-chan struct{} {
	switch {
	case e.channel != nil:
	case e.happened:
		return past
	default:
		e.channel = make(chan struct{})
	}
	return e.channel
}

// past is what has happened.
var past = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
