// Package stock is what the demo's workers fight over: a number of items, and a book of orders.
//
// It stands for a database row and a table beside it, as many a service has them. A worker looks at how many items are
// left, thinks, and sells one: it writes the number back less one and records the order. Nothing makes the two steps
// one. Whoever looks while another thinks sells the same item.
//
// What such a resource can do by itself is compare fencing tokens, and so the stock does. Beyond that it only watches:
// its [Tally] says how often two workers were inside at once, and which item went twice.
package stock
