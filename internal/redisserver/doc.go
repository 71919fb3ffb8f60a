// Package redisserver runs real redis-server processes, one per [Server], for
// what only a real server shows: its Lua numbers, its persistence, what it does
// with a request that reaches it after it was stopped.
//
// Tests call [Start] or [StartN]; everything is gone when the test is, and a
// failed test prints what its servers logged. Programs call [Launch] and Close.
//
// A machine without the binary skips such tests, and says so. Where
// REDQUORUM_REQUIRE_REDIS=1 is set, as in CI, a missing binary is a failure:
// otherwise a broken installation would pass by testing nothing.
// REDQUORUM_REDIS_SERVER names a binary that is not in PATH.
//
// [StartGroup] starts a master with replicas, and sentinels that watch it.
//
// Servers are empty and keep nothing on disk unless their arguments say
// otherwise. Each has a loopback port that stays its own across [Server.Kill]
// and [Server.Restart].
package redisserver
