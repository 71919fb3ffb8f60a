// Package fencing is the code of the document beside it, README.md: what a resource does with a fencing token, written
// for SQL databases and tested against SQLite and PostgreSQL.
//
// It is there to be read and copied, into the transaction code that every service has its own of. It is no part of the
// library and promises nothing to programs that import it; in a module of its own it also keeps two databases out of
// the library's requirements.
package fencing
