// Package direct makes go-redis clients that look at a server past the code under test, while servers stop, hang and die.
//
// go-redis dials in a goroutine of its own, which outlives both the request that wanted the connection and Close, and prints
// every dial that fails to standard error. A client from here dials in the first write on a connection instead: within the
// request, its deadline and its error. When its requests are over, nothing of them is left.
//
// Package node connects in the same way, and may not import test machinery; hence the two of them.
package direct
