// Package authority issues certificates for tests that want TLS: a certificate authority of
// one's own, and certificates that it signs for servers and clients on this machine.
//
// Everything is there both as files, for redis-server and for addresses that name files, and as what
// crypto/tls takes. The files are gone when the test is. An authority is trusted by nobody who is not
// told to.
package authority
