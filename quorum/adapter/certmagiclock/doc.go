// Package certmagiclock gives CertMagic locks of package quorum beside the storage that it has. A [Storage] is that
// storage, with Lock and Unlock from here: several servers behind one name obtain and renew its certificate once, also
// where the storage itself has no locks, or weak ones.
//
// # What is guaranteed
//
//   - One section of a name at a time, for as long as its lease lives: the watchdog renews it, however long a CA takes.
//   - Of two sections in one process the second waits for the first one's Unlock, even if that has lost its lease.
//   - A section whose lease was lost is found out at its next attempt, where CertMagic makes several (in the background,
//     that is, and not in ObtainCertSync). Before each one it asks for the lock to be extended; [Storage.RenewLockLease]
//     then takes it again, behind whoever has it by now, or fails. CertMagic looks in the storage after that, and finds
//     what the other has obtained meanwhile.
//   - No lock of a server that died stays closed for longer than the TTL, its drift and a node timeout.
//
// # What is not
//
//   - That an attempt under way stops when the lease is lost. CertMagic hands no context to its locks that could be ended,
//     and its storages compare no tokens. So after a loss two servers may ask the CA for the same certificate. Both get a
//     valid one, and the storage keeps the last: what it costs is a part of the CA's rate limit. Losses are logged.
//   - Synchronisation of the storage itself. Whether Store and Load are seen by all at once is its matter.
//   - Locks together with those of the storage. All servers of a name must use this package, over the same nodes and with
//     the same [Config.Prefix]; while some still use the storage's own locks, two may be in one section. Change all at once.
package certmagiclock
