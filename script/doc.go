// Package script holds the Lua sources that redquorum runs on a node, one .lua file per operation, with typed
// requests and replies.
//
// Every script states what shall be, never by how much to change it: "holder H has hold count 2 and TTL T". Sent
// twice is the same as sent once. A script runs atomically on one node; nothing in this package knows about quorums.
//
// # Common shape
//
// The first argument of every script is the last moment, in microseconds on the node's own clock, at which it may
// take effect; 0 means none. Acquire, renew, raise, settle, revoke and force-release keep to it: what the network delivers later
// does nothing. Release, inspect and probe ignore it, since they only take away what is the holder's own, or look.
//
// Check answers with the node's record ([ParseRecord]), every other script with the same six values, parsed by
// [ParseReply]: a status, the fence, the time the lock has left, the holder and its hold count, and the node's clock;
// renew adds what is left of the node's quarantine.
//
// # Wire format
//
// Keys, channel and payloads are Redisson's (see [LockKey], [Channel]), so Go and Java services share a lock:
//
//	NAME                              hash: holder -> hold count; expires with the lock
//	redisson_lock__channel:{NAME}     channel: "0" the lock is free, "1" only a failed attempt was rolled back
//	redquorum_fence:{NAME}            string: highest fencing token granted here
//	redquorum_revoked:{NAME}          string: holders force-released here, separated by spaces
//	redquorum_node                    hash: the node's record of itself, see check.lua
//
// Numbers never become strings inside Lua except through string.format('%.0f'): Lua writes 1.7e+15 otherwise.
//
// # What is not
//
// One node's word is no lock: that a quorum has granted, in time, and that the lease has not ended since, is for package
// quorum to know. A script that an error cuts off in the middle (a permission is missing, the memory is full) undoes
// nothing; those that grant do what may fail before there is a lock. A server whose memory is full refuses SET and HSET, unless
// the script has written something before: so what extends or frees a lock comes first.
package script
