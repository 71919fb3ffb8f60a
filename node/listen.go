package node

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// An Event is what a listener hears.
type Event struct {
	// Subscribed tells that messages arrive from now on: after Listen, and after every new connection. What was
	// published before it is lost.
	Subscribed bool
	// Payload is the message, if it is one.
	Payload string
	// Err tells that the server refuses what listening needs, and names it: no messages arrive, on any channel. It is
	// tried again, less and less often.
	Err error
}

// Listen calls hear for every message on a channel and for every (re)subscription, until stop is called. All
// listeners of a node share one connection, which ends soon after the last of them: within two node timeouts.
//
// hear is called from the connection's own goroutine; it must not block, nor call stop, which waits for it. It may be
// called once more while stop runs, never after it has returned. budget is the node timeout: a connection that stays
// silent for two of them, the second one after a ping, is replaced.
func (n *Node) Listen(channel string, budget time.Duration, hear func(Event)) (stop func()) {
	l := &listener{channel: channel, hear: hear}
	n.listening.add(l, budget)
	return sync.OnceFunc(func() { n.listening.remove(l) })
}

type listener struct {
	channel string
	hear    func(Event)

	mu      sync.Mutex // held while hear runs, so that stop can promise that it does not run any more
	stopped bool
}

func (l *listener) tell(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.hear(e)
	}
}

// listeners are a node's listeners by channel, and the goroutine that serves them while there are any.
type listeners struct {
	node  *Node
	group errgroup.Group

	mu       sync.Mutex
	budget   time.Duration
	channels map[string]map[*listener]struct{}
	// Of the connection: the channels it was told to subscribe to, and not to leave; how many subscriptions the server has not
	// confirmed; and the channels from which messages arrive at present.
	subscribed map[string]bool
	asked      map[string]int
	confirmed  map[string]bool
	running    bool
	closed     bool
	changed    chan struct{} // the set of channels is another one; buffered 1
}

func (ls *listeners) add(l *listener, budget time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return
	}
	if ls.channels == nil {
		ls.channels = make(map[string]map[*listener]struct{})
		ls.subscribed, ls.asked, ls.confirmed = make(map[string]bool), make(map[string]int), make(map[string]bool)
		ls.changed = make(chan struct{}, 1)
	}
	ls.budget = budget
	if ls.channels[l.channel] == nil {
		ls.channels[l.channel] = make(map[*listener]struct{})
	}
	ls.channels[l.channel][l] = struct{}{}
	if ls.confirmed[l.channel] {
		// The channel has been heard for a while: the newcomer is told on a goroutine of its own, since the caller
		// may hold locks that hear takes.
		ls.group.Go(func() error { l.tell(Event{Subscribed: true}); return nil })
	}
	ls.notify()
	if !ls.running {
		ls.running = true
		ls.group.Go(ls.serve)
	}
}

func (ls *listeners) remove(l *listener) {
	ls.mu.Lock()
	if set := ls.channels[l.channel]; set != nil {
		delete(set, l)
		if len(set) == 0 {
			delete(ls.channels, l.channel)
		}
	}
	ls.notify()
	ls.mu.Unlock()

	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
}

// notify tells serve that something changed. It is called with ls.mu held.
func (ls *listeners) notify() {
	select {
	case ls.changed <- struct{}{}:
	default:
	}
}

func (ls *listeners) close() {
	ls.mu.Lock()
	ls.closed = true
	clear(ls.channels)
	if ls.changed != nil {
		ls.notify()
	}
	ls.mu.Unlock()
	_ = ls.group.Wait() // no goroutine returns an error
}

// serve keeps a connection for as long as there is a channel to listen to.
func (ls *listeners) serve() error {
	const longest = 2 * time.Second
	var pause time.Duration
	for {
		if pause > 0 && !ls.sleep(pause) {
			return nil
		}
		ls.mu.Lock()
		if len(ls.channels) == 0 {
			ls.running = false
			ls.mu.Unlock()
			return nil
		}
		budget := ls.budget
		ls.mu.Unlock()

		begun := time.Now()
		heard, broke := ls.node.hear(budget)
		ls.mu.Lock()
		clear(ls.subscribed)
		clear(ls.asked)
		clear(ls.confirmed)
		ls.mu.Unlock()
		if heard && time.Since(begun) >= longest {
			pause = 0 // it was one that lasts: each new one has everybody who waits look again
		}
		if !broke {
			continue // somebody may have come to listen as it ended
		}
		// A server that is down is asked again soon, and then less and less often.
		pause = min(max(2*pause, budget/10), longest)
	}
}

// sleep waits, unless there is nobody left to wait for.
func (ls *listeners) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ls.changed:
			ls.mu.Lock()
			over := len(ls.channels) == 0
			if over {
				ls.running = false
			}
			ls.mu.Unlock()
			if over {
				return false
			}
		}
	}
}

// beat is the node timeout of whoever came last.
func (ls *listeners) beat() time.Duration {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.budget
}

// over tells whether nobody will listen any more.
func (ls *listeners) over() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.closed
}

// news returns the channels that the connection has to subscribe to, and those that it has to leave, as if it did. Only now
// are those not confirmed any more: a channel that is left and listened to again before that was subscribed all the while, and
// nobody will confirm it a second time.
func (ls *listeners) news() (more, less []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for channel := range ls.channels {
		if !ls.subscribed[channel] {
			more = append(more, channel)
			ls.subscribed[channel] = true
			ls.asked[channel]++
		}
	}
	for channel := range ls.subscribed {
		if ls.channels[channel] == nil {
			less = append(less, channel)
			delete(ls.subscribed, channel)
			delete(ls.confirmed, channel)
		}
	}
	return more, less
}

// following is how many channels the connection is subscribed to, and names which.
func (ls *listeners) following() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.subscribed)
}

func (ls *listeners) names() []string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Sorted(maps.Keys(ls.subscribed))
}

// confirmation takes in that the server has confirmed a subscription, and tells the listeners.
func (ls *listeners) confirmation(channel string) {
	if ls.confirm(channel) {
		ls.tell(channel, Event{Subscribed: true})
	}
}

// confirm tells whether messages arrive after a confirmation: not if the connection has left the channel since, and not yet if
// it has taken it up again. If nobody is there at this moment, whoever comes before the connection leaves is told at once.
func (ls *listeners) confirm(channel string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.asked[channel]--; ls.asked[channel] > 0 {
		return false
	}
	delete(ls.asked, channel)
	if ls.subscribed[channel] {
		ls.confirmed[channel] = true
	}
	return ls.subscribed[channel]
}

// tellAll passes an event on to all listeners.
func (ls *listeners) tellAll(e Event) {
	ls.mu.Lock()
	channels := slices.Collect(maps.Keys(ls.channels))
	ls.mu.Unlock()
	for _, channel := range channels {
		ls.tell(channel, e)
	}
}

// tell passes an event on to the listeners of a channel.
func (ls *listeners) tell(channel string, e Event) {
	ls.mu.Lock()
	var who []*listener
	for l := range ls.channels[channel] {
		who = append(who, l)
	}
	ls.mu.Unlock()
	for _, l := range who {
		l.tell(e)
	}
}
