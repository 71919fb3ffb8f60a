package stock

import (
	"errors"
	"fmt"
)

// Tally is what happened to a stock.
type Tally struct {
	// Initial is how many items there were, Left what the stock says is left.
	Initial, Left int
	// Sold is the number of orders.
	Sold int
	// Twice is the number of orders for an item that had been sold before.
	Twice int
	// Together is how often a worker sold, or tried to, although another one had come in since it looked.
	Together int
	// Refused is how often a token was lower than one seen before.
	Refused int
	// Regressed is the number of orders whose token is not greater than that of the order before. Every order has a
	// lease of its own, so equal ones are two leases with one token, which no fence would notice.
	Regressed int
	// Abandoned is how often a worker looked and left without selling, because its lease or itself was gone.
	Abandoned int
	// Visits is how often a worker came in.
	Visits int
}

// Oversold is how many more items were sold than there were.
func (t Tally) Oversold() int { return max(0, t.Sold-t.Initial) }

// Exact returns nil if every item was sold exactly once, by one worker at a time; else all that is wrong.
func (t Tally) Exact() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(t.Sold == t.Initial, "%d orders for %d items", t.Sold, t.Initial)
	check(t.Left == 0, "%d of %d items left", t.Left, t.Initial)
	check(t.Twice == 0, "%d items sold again", t.Twice)
	check(t.Together == 0, "two workers inside at once, %d times", t.Together)
	check(t.Regressed == 0, "%d tokens not greater than the one before", t.Regressed)
	return errors.Join(wrong...)
}
