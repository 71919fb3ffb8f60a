package stock

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Visitor is a worker of a process, both counted from 1.
type Visitor struct{ Process, Worker int }

// String names the visitor.
func (v Visitor) String() string { return fmt.Sprintf("worker %d.%d", v.Process, v.Worker) }

// Stock is a number of items and a book of orders. It is safe for concurrent use; that each step is atomic does not
// make two of them so.
type Stock struct {
	mu       sync.Mutex
	quantity int          // what workers look at and write back
	sold     map[int]bool // the items that have an order
	fence    int64        // the highest token seen
	last     int64        // the token of the last order
	visits   map[Visitor]*visit
	marks    []mark
	tally    Tally
}

// visit is the time between a look and what follows from it.
type visit struct {
	crowded bool // another one looked meanwhile
}

// mark is closed when so many orders are in the book.
type mark struct {
	orders  int
	reached chan struct{}
}

// New returns a stock of items 1 to n.
func New(n int) *Stock {
	return &Stock{
		quantity: n,
		sold:     make(map[int]bool),
		visits:   make(map[Visitor]*visit),
		tally:    Tally{Initial: n},
	}
}

// Look returns how many items are left. If there are any, the visitor is inside from now on until it sells or leaves.
//
// It is false if the token is lower than one seen before; 0 is no token, and never refused. A look raises the fence as
// a sale does: what a later holder has read, an earlier one must not change any more.
func (s *Stock) Look(who Visitor, token int64) (quantity int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.admit(token) {
		return 0, false
	}
	s.tally.Visits++
	if s.quantity > 0 {
		for _, other := range s.visits {
			other.crowded = true
		}
		s.visits[who] = &visit{}
	}
	return s.quantity, true
}

// Sell records an order for the item and writes the number back: item is what the visitor's look returned, and one
// less is left afterwards, whatever others have written meanwhile. It is false if the token is lower than one seen
// before; then nothing was written.
func (s *Stock) Sell(who Visitor, token int64, item int) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.visits[who]; v != nil && v.crowded {
		// Counted even if the fence refuses the sale: the visitor was there and believed to be alone.
		s.tally.Together++
	}
	delete(s.visits, who)
	if !s.admit(token) {
		return false
	}
	if token != 0 && token <= s.last {
		s.tally.Regressed++
	}
	s.last = token
	if s.sold[item] {
		s.tally.Twice++
	}
	s.sold[item] = true
	s.tally.Sold++
	s.quantity = item - 1
	s.marks = slices.DeleteFunc(s.marks, s.passed)
	return true
}

// Leave ends a visit that came to nothing: the visitor noticed that its lease is gone, or is gone itself.
func (s *Stock) Leave(who Visitor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visits[who] != nil {
		delete(s.visits, who)
		s.tally.Abandoned++
	}
}

// Gone ends the visits of a process that has ended.
func (s *Stock) Gone(process int) {
	for _, who := range s.Inside() {
		if who.Process == process {
			s.Leave(who)
		}
	}
}

// admit compares a token with the fence. It is called with s.mu held.
func (s *Stock) admit(token int64) bool {
	if token == 0 {
		return true
	}
	if token < s.fence {
		s.tally.Refused++
		return false
	}
	s.fence = token
	return true
}

// Reached returns a channel that is closed when so many orders are in the book.
func (s *Stock) Reached(orders int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := mark{orders, make(chan struct{})}
	if !s.passed(m) {
		s.marks = append(s.marks, m)
	}
	return m.reached
}

// passed closes a mark that was reached. It is called with s.mu held.
func (s *Stock) passed(m mark) bool {
	if s.tally.Sold < m.orders {
		return false
	}
	close(m.reached)
	return true
}

// Inside returns who is inside, in order.
func (s *Stock) Inside() []Visitor {
	s.mu.Lock()
	defer s.mu.Unlock()
	var inside []Visitor
	for who := range s.visits {
		inside = append(inside, who)
	}
	slices.SortFunc(inside, func(a, b Visitor) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Worker, b.Worker))
	})
	return inside
}

// Tally returns the count so far.
func (s *Stock) Tally() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally
	t.Left = s.quantity
	return t
}
