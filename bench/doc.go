// Bench measures redquorum beside other lock clients, in one run and on the same servers:
//
//	go -C bench run . [flags]
//
// What it guarantees: every client is set up as its own documentation advises, each row says how many nodes it uses,
// what fails is in the table, and nothing that it started is left when it ends, by Ctrl-C too. What it does not: that a
// figure from a busy machine, from embedded nodes or from --quick means anything.
package main
