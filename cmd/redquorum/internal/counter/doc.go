// Package counter is where workers and the stock meet: calls over the standard input and output of a worker process.
//
// No socket has to be made or removed that way, no other process can get in between, and what a worker has to know,
// the nodes' passwords among it, is seen in no process list and no environment. The pipe is a lifeline besides: when
// either process ends, however it ends, the other one reads the end of the file.
package counter
