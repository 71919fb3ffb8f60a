-- Probe: run every command that the other scripts need, on a scratch key that is gone at the end, so that a missing
-- permission, a read-only replica or a full memory shows at start-up and not at the first lock.
--
-- KEYS  1 scratch lock  2 scratch fence  3 record of this node  4 scratch revoked: permission is asked for all of them,
--       and the last two are not touched
-- ARGV  1 last moment (unused)  2 scratch channel
--
-- probed  everything worked
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

redis.call('SET', KEYS[2], '1', 'PX', '1000')
redis.call('GET', KEYS[2])
redis.call('PEXPIRE', KEYS[1], '1000') -- on no key yet: were it not permitted, the key would stay
redis.call('HSET', KEYS[1], 'probe', '1')
redis.call('PEXPIRE', KEYS[1], '1000')
redis.call('HLEN', KEYS[1])
redis.call('HGETALL', KEYS[1])
redis.call('HRANDFIELD', KEYS[1], '65') -- of node.Look
redis.call('HGET', KEYS[1], 'probe')
redis.call('HMGET', KEYS[1], 'probe')
redis.call('HEXISTS', KEYS[1], 'probe')
redis.call('EXISTS', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('PUBLISH', ARGV[2], '1')
return {'probed', 0, -2, '', 0, now}
