// Package faultnet is a network of embedded Redis nodes inside a testing/synctest bubble: the machinery for tests of
// the protocol in fake time.
//
// A [Node] is a miniredis behind links that a test can slow down, hold, cut, or make lose what they carry, in either
// direction. It is an unkind network: what was sent before a connection was closed may still arrive, when a held node
// goes on, as it does on a real server that was stopped with a request in its socket.
package faultnet
