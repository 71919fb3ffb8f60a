// Package migrate is the code that docs/migrate-redsync.md and docs/migrate-redisson.md show, and shows on real servers
// what they say about two kinds of locks on one name. It is for those documents only: nothing here is to be imported.
//
// What the documents say about other libraries is true of redsync v4.18 and Redisson 3.
package migrate
