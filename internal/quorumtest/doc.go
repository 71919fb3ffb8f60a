// Package quorumtest is what tests of the package quorum on real servers have in common: [Machines], which stop, die and
// come back as a test tells them to, and [Proxy], the unkind network between a client and one of them. It shows nothing by
// itself, and keeps no time but the real one.
package quorumtest
